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
		text := markdown(t, file)
		var got []string
		for _, heading := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(text, -1) {
			got = append(got, heading[1])
		}
		if !slices.Equal(got, sections) {
			t.Errorf("%s: sections %q, want %q", file, got, sections)
		}
		// Title, links, then the problem.
		problem := strings.Split(text, "\n\n")[2]
		if n := len(regexp.MustCompile(`[.?](\s|$)`).FindAllString(problem, -1)); n != 2 {
			t.Errorf("%s: the problem takes %d sentences, want 2: %s", file, n, problem)
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

// The function that a lesson says to read is where it says.
func TestTheFunctionsToReadAreThere(t *testing.T) {
	for _, file := range lessons(t) {
		m := regexp.MustCompile("## Read\n\n`(\\w+)` in \\[([\\w./]+)\\]\\(../../([\\w./]+)\\)").FindStringSubmatch(markdown(t, file))
		if m == nil || m[2] != m[3] {
			t.Errorf("%s: no function to read, or a link to elsewhere: %q", file, m)
			continue
		}
		source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, m[2]), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if !slices.ContainsFunc(source.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && f.Name.Name == m[1]
		}) {
			t.Errorf("%s: %s has no function %s", file, m[2], m[1])
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
