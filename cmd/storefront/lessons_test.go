package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lessons are the pages of the eight.
func lessons(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(root + "/scripts/lessons/[1-8]-*.md")
	if err != nil || len(files) != 8 {
		t.Fatalf("%d lessons, %v", len(files), err)
	}
	return files
}

func markdown(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What every lesson has, in this order.
var sections = []string{"Without", "With", "Where to look", "Read", "Choosing the numbers", "What it does not solve", "Exercise"}

func TestLessonsHaveTheirParts(t *testing.T) {
	for _, file := range lessons(t) {
		parts := strings.Split(markdown(t, file), "\n## ")
		var got []string
		for _, part := range parts[1:] {
			heading, body, _ := strings.Cut(part, "\n")
			got = append(got, heading)
			shows := strings.Contains(body, "\n```console\n")
			if slices.Contains([]string{"Without", "With", "Exercise"}, heading) && !shows || len(strings.Fields(body)) < 5 {
				t.Errorf("%s: there is little under %s", file, heading)
			}
		}
		if _, look, _ := strings.Cut(markdown(t, file), "\n## Where to look\n"); !strings.Contains(strings.SplitN(look, "\n## ", 2)[0], "[the live page](../../README.md#the-live-page)") {
			t.Errorf("%s does not say where to look on the live page", file)
		}
		if !slices.Equal(got, sections) {
			t.Errorf("%s: sections %q, want %q", file, got, sections)
		}
		// Title, links, then the problem.
		problem := strings.Split(parts[0], "\n\n")[2]
		if n := len(regexp.MustCompile(`[.?](\s|$)`).FindAllString(problem, -1)); n != 2 {
			t.Errorf("%s: the problem takes %d sentences, want 2: %s", file, n, problem)
		}
	}
}

// content is what a page has, so that none of it goes missing with its block.
type content struct {
	commands  int // for a server
	elsewhere int // of other programs, run by their tests
	log       int // lines
	events    int
}

var contents = map[string]content{
	"README.md":         {30, 1, 3, 5},
	"1-timeout.md":      {9, 1, 1, 0},
	"2-retry.md":        {30, 0, 1, 0},
	"3-breaker.md":      {17, 1, 4, 0},
	"4-bulkhead.md":     {15, 1, 0, 0},
	"5-ratelimit.md":    {10, 1, 1, 0},
	"6-shedding.md":     {7, 1, 1, 0},
	"7-backpressure.md": {0, 4, 0, 0},
	"8-combined.md":     {16, 1, 2, 0},
	"teacher.md":        {1, 0, 0, 0},
}

func TestNothingIsMissingFromThePages(t *testing.T) {
	for _, file := range pages(t) {
		var got content
		for _, b := range pageBlocks(t, file) {
			for _, line := range b.Lines {
				command, ok := strings.CutPrefix(line, "$ ")
				switch {
				case ok && elsewhere(command):
					got.elsewhere++
				case ok:
					got.commands++
				case strings.HasPrefix(line, "time="):
					got.log++
				case strings.HasPrefix(line, "event: "):
					got.events++
				}
			}
		}
		if want := contents[filepath.Base(file)]; got != want {
			t.Errorf("%s: %+v, want %+v", file, got, want)
		}
	}
}

// Each lesson works whatever was tried before it: it begins with a reset, or with a
// program of its own.
func TestLessonsBeginWithAReset(t *testing.T) {
	for _, file := range lessons(t) {
		for _, b := range pageBlocks(t, file) {
			if b.Lang != "console" {
				continue
			}
			first := b.Lines[0]
			if first != `$ curl -s -w '\n' -X POST localhost:3000/reset` && first != "$ go run ./cmd/backpressure" {
				t.Errorf("%s:%d: begins with %s", file, b.Line, first)
			}
			break
		}
	}
}

// functionsIn are the functions and methods of a Go file, and its variables.
func functionsIn(t *testing.T, file string) (names []string) {
	t.Helper()
	source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, d := range source.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					names = append(names, v.Names[0].Name)
				}
			}
		}
	}
	return names
}

// A function that a page names is where it says, and a lesson names one to read.
func TestTheFunctionsToReadAreThere(t *testing.T) {
	for _, file := range pages(t) {
		text := markdown(t, file)
		found := regexp.MustCompile("`(\\w+)` in\\s\\[([\\w./]+)\\]\\(([\\w./]+)\\)").FindAllStringSubmatch(text, -1)
		found = append(found, regexp.MustCompile("\\[`(\\w+)`\\]\\((([\\w./]+))\\)").FindAllStringSubmatch(text, -1)...)
		for _, m := range found {
			target := filepath.Join(filepath.Dir(file), m[3])
			if filepath.Base(m[2]) != filepath.Base(target) || !slices.Contains(functionsIn(t, target), m[1]) {
				t.Errorf("%s: %s has no %s", file, target, m[1])
			}
		}
		if base := filepath.Base(file); base != "README.md" && base != "teacher.md" &&
			!regexp.MustCompile("\n## Read\n\n`\\w+` in \\[internal/").MatchString(text) {
			t.Errorf("%s: no function to read", file)
		}
	}
}

// The flags that pages speak of are ones that there are.
func TestFlagsOnPagesAreThere(t *testing.T) {
	help := markdown(t, root+"/testdata/help.golden")
	known := []string{"capacity", "events", "policy", "timeout", "work", "exercise", "update"}
	for _, m := range regexp.MustCompile(`(?m)^  -([a-z-]+) `).FindAllStringSubmatch(help, -1) {
		known = append(known, m[1])
	}
	found := 0
	for _, file := range pages(t) {
		for _, span := range regexp.MustCompile("`[^`]+`").FindAllString(strings.ReplaceAll(markdown(t, file), "```", ""), -1) {
			for _, m := range regexp.MustCompile("[` ]-([a-z][a-z-]{3,})[` ]").FindAllStringSubmatch(span, -1) {
				found++
				if !slices.Contains(known, m[1]) {
					t.Errorf("%s: %s: there is no flag -%s", file, span, m[1])
				}
			}
			for _, m := range regexp.MustCompile(`STOREFRONT_([A-Z_]+)`).FindAllStringSubmatch(span, -1) {
				if name := strings.ToLower(strings.ReplaceAll(m[1], "_", "-")); !slices.Contains(known, name) {
					t.Errorf("%s: %s: there is no flag -%s", file, span, name)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("%d flags: are they still found?", found)
	}
}

// The first lines of a lesson lead to those around it, and "lesson N" to lesson N.
func TestLessonsLeadToEachOther(t *testing.T) {
	files := lessons(t)
	title := func(file string) string {
		_, title, _ := strings.Cut(strings.SplitN(markdown(t, file), "\n", 2)[0], ". ")
		title, _, _ = strings.Cut(title, ",")
		return strings.ToLower(title)
	}
	link := func(i int) string { return fmt.Sprintf("[%s](%s)", title(files[i]), filepath.Base(files[i])) }
	for i, file := range files {
		text := markdown(t, file)
		want := "[The workshop](../../README.md#the-workshop)"
		if i > 0 {
			want += " · before: " + link(i-1)
		}
		if i < len(files)-1 {
			want += " · next: " + link(i+1)
		} else {
			want += " · [for the teacher](teacher.md)"
		}
		if got := strings.TrimSuffix(strings.Split(text, "\n")[2], "\\"); got != want {
			t.Errorf("%s: leads to %s, want %s", file, got, want)
		}
		exercise := regexp.MustCompile(`^\d-|\.md$`).ReplaceAllString(filepath.Base(file), "")
		for _, m := range regexp.MustCompile(`\(\.\./exercises/([a-z]+)(_answer)?\.go\)`).FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(exercise, m[1]) || !strings.Contains(text, "-exercise "+m[1]+"\n") {
				t.Errorf("%s: leads to the exercise %s", file, m[1])
			}
		}
	}
	for _, file := range pages(t) {
		for _, m := range regexp.MustCompile(`(?i)\[lesson (\d)\]\(([^)]*)\)`).FindAllStringSubmatch(markdown(t, file), -1) {
			if !strings.HasPrefix(filepath.Base(m[2]), m[1]+"-") {
				t.Errorf("%s: %s", file, m[0])
			}
		}
	}
}

// Every link within the repository leads to a file, and to a heading of it where it
// names one.
func TestLinksLeadSomewhere(t *testing.T) {
	anchors := func(file string) (all []string) {
		for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(markdown(t, file), -1) {
			anchor := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading[1]), "")
			all = append(all, strings.ReplaceAll(anchor, " ", "-"))
		}
		return all
	}
	found := 0
	for _, file := range pages(t) {
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(markdown(t, file), -1) {
			path, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			found++
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", file, err)
			} else if anchor != "" && !slices.Contains(anchors(target), anchor) {
				t.Errorf("%s: %s has no heading for #%s", file, target, anchor)
			}
		}
	}
	if found < 40 {
		t.Errorf("%d links: are they still found?", found)
	}
}

// The README lists the lessons, by their titles.
func TestReadmeListsTheLessons(t *testing.T) {
	readme := markdown(t, root+"/README.md")
	for i, file := range lessons(t) {
		title, _, _ := strings.Cut(markdown(t, file), "\n")
		title, ok := strings.CutPrefix(title, fmt.Sprintf("# %d. ", i+1))
		row := fmt.Sprintf("| %d | [%s](scripts/lessons/%s) |", i+1, title, filepath.Base(file))
		if !ok || !strings.Contains(readme, row) {
			t.Errorf("the README has no %s", row)
		}
	}
}
