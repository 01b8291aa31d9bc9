package ascii

import "testing"

func TestVisible(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "k": true, "key": true, "keys": false, // too long
		"!~": true, " ": false, "a b": false, "\x7f": false, "a\t": false, "ä": false, "\x00": false,
	} {
		if got := Visible(s, 3); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}
