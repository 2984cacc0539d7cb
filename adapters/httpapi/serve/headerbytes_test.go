package serve

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

// TestControlBytesInAHeaderAreNoRequest sends them everywhere in a header, in a second request of a connection too. A header that
// is read otherwise by a proxy in front may hide a request, or a key.
func TestControlBytesInAHeaderAreNoRequest(t *testing.T) {
	patch := "PATCH " + thing + " HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer " + anyKey + "\r\n" + jsonType + "\r\n"
	requests := map[string]string{
		"CR in the method":         "G\rET " + thing + " HTTP/1.1\r\nHost: api\r\n\r\n",
		"CR before the method":     "\rGET " + thing + " HTTP/1.1\r\nHost: api\r\n\r\n",
		"CR in the target":         "GET " + thing + "\rx HTTP/1.1\r\nHost: api\r\n\r\n",
		"CR after the target":      "GET " + thing + "\r HTTP/1.1\r\nHost: api\r\n\r\n",
		"CR after the version":     "GET " + thing + " HTTP/1.1\r\r\nHost: api\r\n\r\n",
		"CR for the version's end": "GET " + thing + " HTTP/1.1\rHost: api\r\n\r\n",
		"CR in the host":           "GET " + thing + " HTTP/1.1\r\nHost: a\rpi\r\n\r\n",
		"CR in a length":           patch + "Content-Length: 1\r2\r\n\r\n{\"name\":\"a\"}",
		"CR after a length":        patch + "Content-Length: 12\r\r\n\r\n{\"name\":\"a\"}",
		"CR before a length":       patch + "Content-Length:\r12\r\n\r\n{\"name\":\"a\"}",
		"CR after chunked":         patch + "Transfer-Encoding: chunked\r\r\n\r\n0\r\n\r\n",
		"NUL in the target":        "GET " + thing + "\x00 HTTP/1.1\r\nHost: api\r\n\r\n",
		"tab in the target":        "GET " + thing + "\t HTTP/1.1\r\nHost: api\r\n\r\n",
		"CR in the key":            head("GET", thing, "sele\rcted"),
		"CR after the key":         head("GET", thing, anyKey+"\r"),
	}
	for name, line := range map[string]string{
		"CR in a value": "X-A: b\rc", "CR after a value": "X-A: b\r", "CR before a value": "X-A:\rb", "CR for a value": "X-A: \r",
		"CR between lines": "X-A: b\rX-B: c", "CR in a name": "X-\rA: b", "CR before a name": "\rX-A: b",
		"CR before the colon":        "X-A\r: b",
		"CR before a continued line": "X-A: b\r\r\n c", "CR in a continued line": "X-A: b\r\n c\rd",
		"CR begins a continued line": "X-A: b\r\n \rc", "CR ends a continued line": "X-A: b\r\n c\r", "CR for a line": "X-A: b\r\n\r",
		"LF between lines": "X-A: b\nX-B: c", "LF before a continued line": "X-A: b\n c", "LF for the last line": "X-A: b\r\n\nX-B: c",
		"LF hides a length": "X-A: b\nContent-Length: 5", "NUL in a name": "X-\x00A: b",
	} {
		requests[name] = head("GET", thing, anyKey, line)
	}
	for c := range byte(' ') {
		if c != '\t' && c != '\r' && c != '\n' {
			requests[fmt.Sprintf("%#x in a value", c)] = head("GET", thing, anyKey, "X-A: b"+string(rune(c))+"c")
			requests[fmt.Sprintf("%#x after a value", c)] = head("GET", thing, anyKey, "X-A: b"+string(rune(c)))
		}
	}
	requests["DEL in a value"] = head("GET", thing, anyKey, "X-A: b\x7fc")
	st := open(t)
	for name, text := range requests {
		for before, handled := range map[string]int64{"": 0, head("GET", thing, anyKey): 1} {
			st.handled.Store(0)
			l := st.dial(t)
			l.say(before + text)
			if before != "" {
				l.hear(cutBy)
			}
			r := l.hear(cutBy)
			if r.StatusCode != 400 || !strings.Contains(r.text, string(fault.ValidationError)) || st.handled.Load() != handled {
				t.Errorf("%s: %d %s, %d handlers ran", name, r.StatusCode, r.text, st.handled.Load())
			}
			l.ended(cutBy)
		}
	}
}

// TestWhatHeadersMayHold is the other side: an empty line before a request, a tab, letters of any alphabet, a continued line.
func TestWhatHeadersMayHold(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	for _, line := range []string{"X-A: b\tc", "X-A: \xc3\xa9", "X-A: \xff", "X-A:", "X-A: b\r\n c"} {
		l.say("\r\n" + head("GET", thing, anyKey, line))
		if r := l.hear(cutBy); r.StatusCode != 200 {
			t.Errorf("%q: %d %s", line, r.StatusCode, r.text)
		}
	}
}
