package transcript

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// Curl is curl over dial, with the options that transcripts use. Any other fails,
// as real curl could mean something else by it.
func Curl(dial func(ctx context.Context, network, address string) (net.Conn, error)) Command {
	return func(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
		c, err := parseCurl(args[1:])
		if err != nil {
			fmt.Fprintf(stderr, "curl: %v\n", err)
			return 2
		}
		// One Write, unlike real curl, so that the lines of parallel jobs do
		// not mix.
		var out bytes.Buffer
		defer func() { _, _ = out.WriteTo(stdout) }()
		start := time.Now()
		status, err := c.do(ctx, dial, &out)
		out.WriteString(strings.NewReplacer(
			`\n`, "\n",
			"%{http_code}", fmt.Sprintf("%03d", status),
			"%{time_total}", fmt.Sprintf("%.6f", time.Since(start).Seconds()),
		).Replace(c.format))
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			return 7
		case err != nil:
			return 52
		}
		return 0
	}
}

type curl struct {
	method  string
	url     string
	header  http.Header
	body    string
	include bool   // -i, -I
	discard bool   // -o /dev/null
	format  string // -w
}

// parseCurl takes short options, also run together as in -si.
func parseCurl(args []string) (*curl, error) {
	c := &curl{header: http.Header{"Accept": {"*/*"}, "User-Agent": {"curl"}}}
	given := http.Header{} // by -H: may repeat, and replaces curl's own
	var data []string
	silent := false
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			if c.url != "" {
				return nil, fmt.Errorf("a second URL, %s", arg)
			}
			c.url = arg
			continue
		}
		for _, option := range arg[1:] {
			value := ""
			if strings.ContainsRune("owHXd", option) {
				if !strings.HasSuffix(arg, string(option)) || len(args) == 0 {
					return nil, fmt.Errorf("-%c needs its value in the next word", option)
				}
				value, args = args[0], args[1:]
			}
			switch option {
			case 's':
				silent = true
			case 'i':
				c.include = true
			case 'I':
				c.include, c.method = true, http.MethodHead
			case 'o':
				if value != "/dev/null" {
					return nil, fmt.Errorf("-o %s: only /dev/null is known", value)
				}
				c.discard = true
			case 'w':
				c.format = value
			case 'H':
				name, v, ok := strings.Cut(value, ":")
				if !ok {
					return nil, fmt.Errorf("-H %s: no colon", value)
				}
				given.Add(name, strings.TrimSpace(v))
			case 'X':
				c.method = value
			case 'd':
				data = append(data, value)
			default:
				return nil, fmt.Errorf("-%c is not known to this curl", option)
			}
		}
	}
	if len(data) > 0 {
		c.body = strings.Join(data, "&")
		c.method = cmp.Or(c.method, http.MethodPost)
		c.header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	maps.Copy(c.header, given)
	rest := strings.NewReplacer(`\n`, "", "%{http_code}", "", "%{time_total}", "").Replace(c.format)
	switch {
	case !silent:
		return nil, errors.New("without -s the real one may print a progress meter")
	case strings.ContainsAny(rest, `\%`):
		return nil, fmt.Errorf("-w %s: only %%{http_code}, %%{time_total} and \\n are known", c.format)
	case c.url == "":
		return nil, errors.New("no URL")
	case !strings.Contains(c.url, "://"):
		c.url = "http://" + c.url
	}
	return c, nil
}

// do makes the request, prints what the options ask for and returns the status,
// 0 if there was no answer.
func (c *curl) do(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), out io.Writer) (int, error) {
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, strings.NewReader(c.body))
	if err != nil {
		return 0, err
	}
	req.Header = c.header
	conn, err := dial(ctx, "tcp", req.URL.Host)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := req.Write(conn); err != nil {
		return 0, err
	}
	// http.Response does not keep the order of the header.
	var raw bytes.Buffer
	resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &raw)), req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if c.include && !c.discard {
		head, _, _ := strings.Cut(raw.String(), "\r\n\r\n")
		fmt.Fprint(out, strings.ReplaceAll(head, "\r\n", "\n"), "\n\n")
	}
	if c.discard {
		out = io.Discard
	}
	_, err = io.Copy(out, resp.Body)
	return resp.StatusCode, err
}
