package storefront

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"example.com/storefront/internal/transcript"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWhatThePagesSayReallyHappens(t *testing.T) {
	pages, err := transcript.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for _, page := range pages {
		markdown, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text += " " + strings.Join(strings.Fields(string(markdown)), " ")
	}
	for _, c := range claims {
		t.Run(c.says, func(t *testing.T) {
			if !strings.Contains(text, c.says) {
				t.Error("no page says so")
			}
			inBubble(t, c.cfg, c.test)
		})
	}
}

// The README's table of metrics has the names and labels that there are.
func TestReadmeListsEveryMetric(t *testing.T) {
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|([a-z_`, ]*)\\|").FindAllStringSubmatch(readme(t), -1) {
		listed[row[1]] = strings.Trim(strings.ReplaceAll(row[2], "`", ""), " ")
	}
	inBubble(t, Config{}, func(w *world) {
		w.get("/limited")
		seen := map[string]bool{}
		for series := range w.scrape() {
			name, labels, _ := strings.Cut(series, "{")
			if strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_sum") {
				continue
			}
			name = strings.TrimSuffix(name, "_count")
			seen[name] = true
			var names []string
			for _, m := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(labels, -1) {
				names = append(names, m[1])
			}
			for _, label := range names {
				if !strings.Contains(", "+listed[name]+",", ", "+label+",") {
					w.Errorf("%s: the README has the labels %q", series, listed[name])
				}
			}
			if listed[name] != "" && len(names) != strings.Count(listed[name], ",")+1 {
				w.Errorf("%s: the README has the labels %q", series, listed[name])
			}
		}
		for name := range seen {
			if _, ok := listed[name]; !ok {
				w.Errorf("the README does not list %s", name)
			}
		}
		for name := range listed {
			if strings.Contains(name, "_") && !seen[name] {
				w.Errorf("the README lists %s, which there is not", name)
			}
		}
	})
}
