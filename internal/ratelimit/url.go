package ratelimit

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"regexp"
	"strconv"
)

// CheckURL returns an error if raw is not the URL of a Redis. It repeats nothing of it,
// as any part may be a password.
func CheckURL(raw string) error {
	_, err := parseURL(raw)
	return err
}

var database = regexp.MustCompile(`^(/[0-9]{0,5})?$`)

// parseURL returns a URL that has a port, as redigo minds neither redis://[::1] nor
// redis://127.0.0.1: well.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err == nil && (u.Scheme == "redis" || u.Scheme == "rediss") && u.Hostname() != "" &&
		database.MatchString(u.Path) && u.RawQuery == "" && u.Fragment == "" {
		port := cmp.Or(u.Port(), "6379")
		if n, err := strconv.ParseUint(port, 10, 16); err == nil && n > 0 {
			u.Host = net.JoinHostPort(u.Hostname(), port)
			return u, nil
		}
	}
	return nil, errors.New("must be like redis://127.0.0.1:6379/0")
}
