// Package ascii checks values that clients choose: keys and tokens.
package ascii

// Visible says whether s has 1 to most visible ASCII characters ('!' to '~', so no
// space) and no others.
func Visible(s string, most int) bool {
	for _, c := range []byte(s) {
		if c < '!' || c > '~' {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= most
}
