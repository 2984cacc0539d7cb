package serve

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/fault"
)

const chunkedCoding = "Transfer-Encoding: chunked"

// inChunks is a chunked JSON body as most clients send it, in pieces of a size.
func inChunks(text string, size int) string {
	var b strings.Builder
	for len(text) > 0 {
		n := min(size, len(text))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, text[:n])
		text = text[n:]
	}
	return b.String() + "0\r\n\r\n"
}

func chunkedHead(key string, lines ...string) string {
	return head("PATCH", thing, key, append([]string{jsonType, chunkedCoding}, lines...)...)
}

func TestAChunkedBodyIsRead(t *testing.T) {
	const ada = `{"name":"ada"}`
	long := `{"name":"` + strings.Repeat("a", bodyLimit-11) + `"}`
	for name, body := range map[string]string{
		"one chunk":              inChunks(ada, 100),
		"a byte a chunk":         inChunks(ada, 1),
		"the longest":            inChunks(long, 8<<10),
		"upper-case size":        "E\r\n" + ada + "\r\n0\r\n\r\n",
		"leading zeros":          "000e\r\n" + ada + "\r\n000\r\n\r\n",
		"space after a size":     "e \r\n" + ada + "\r\n0\r\n\r\n",
		"an extension":           "e;a=b\r\n" + ada + "\r\n0;c\r\n\r\n",
		"a quoted extension":     "e;a=\"b;c\"\r\n" + ada + "\r\n0\r\n\r\n",
		"a trailer":              "e\r\n" + ada + "\r\n0\r\nX-Sum: 1\r\n\r\n",
		"a trailer of a request": "e\r\n" + ada + "\r\n0\r\nAuthorization: Bearer wrong\r\nContent-Length: 3\r\n\r\n",
		"and no more":            "e\r\n" + ada + "\r\n0\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t)
			l := st.dial(t)
			l.say(chunkedHead(anyKey) + body)
			if r := l.hear(cutBy); r.StatusCode != 200 || !r.Close || !strings.Contains(r.text, `"name":"a`) {
				t.Errorf("%d, closing %v: %.100s", r.StatusCode, r.Close, r.text)
			}
			l.ended(cutBy)
		})
	}
}

// Node, Java and Python send the header first, and each chunk when they have it.
func TestAChunkedBodyArrivesInPieces(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	for _, b := range []byte(chunkedHead(anyKey) + inChunks(`{"name":"ada"}`, 5)) {
		l.say(string(b))
	}
	if r := l.hear(cutBy); r.StatusCode != 200 || !strings.Contains(r.text, "ada") {
		t.Fatalf("got %d %s", r.StatusCode, r.text)
	}
}

func TestAChunkedBodyIsInvited(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	l.say(chunkedHead(anyKey, "Expect: 100-continue"))
	if r := l.hear(atOnce); r.StatusCode != 100 {
		t.Fatalf("got %d, want 100", r.StatusCode)
	}
	l.say(inChunks(`{"name":"ada"}`, 100))
	if r := l.hear(atOnce); r.StatusCode != 200 || !strings.Contains(r.text, "ada") {
		t.Fatalf("got %d %s", r.StatusCode, r.text)
	}
}

func TestAChunkedBodyIsRefused(t *testing.T) {
	const size = "64\r\n" // of more than ever comes
	hidden := head("GET", thing, anyKey)
	for name, c := range map[string]struct {
		body string
		want fault.Code
	}{
		"a byte too long":      {inChunks(strings.Repeat(" ", bodyLimit+1), 8<<10), fault.PayloadTooLarge},
		"without an end":       {strings.Repeat(inChunks(strings.Repeat(" ", 1<<10), 1<<10)[:1<<10+7], 65), fault.PayloadTooLarge},
		"in a huge chunk":      {"ffffffffffffffff\r\n" + strings.Repeat(" ", bodyLimit+1), fault.PayloadTooLarge},
		"empty":                {"0\r\n\r\n" + hidden, fault.InvalidJSON},
		"no JSON":              {inChunks("x", 1) + hidden, fault.InvalidJSON},
		"unknown field":        {inChunks(`{"x":1}`, 3) + hidden, fault.ValidationError},
		"no size":              {"\r\n{}\r\n0\r\n\r\n", fault.ValidationError},
		"negative size":        {"-2\r\n{}\r\n0\r\n\r\n", fault.ValidationError},
		"signed size":          {"+2\r\n{}\r\n0\r\n\r\n", fault.ValidationError},
		"size with 0x":         {"0x2\r\n{}\r\n0\r\n\r\n", fault.ValidationError},
		"size with _":          {"1_0\r\n{}\r\n0\r\n\r\n", fault.ValidationError},
		"no digit":             {"g\r\n{}\r\n0\r\n\r\n", fault.ValidationError},
		"space before a size":  {" 2\r\n{}\r\n0\r\n\r\n", fault.ValidationError},
		"size of 17 digits":    {"10000000000000002\r\n{}\r\n0\r\n\r\n", fault.ValidationError},
		"size ends in LF":      {"2\n{}\r\n0\r\n\r\n", fault.ValidationError},
		"size ends in CR":      {"2\r{}\r\n0\r\n\r\n", fault.ValidationError},
		"LF in an extension":   {"2;a\nb\r\n{}\r\n0\r\n\r\n", fault.ValidationError},
		"CR in an extension":   {"2;a\rb\r\n{}\r\n0\r\n\r\n", fault.ValidationError},
		"endless extension":    {"2;" + strings.Repeat("a", 1<<20), fault.ValidationError},
		"extensions, no bytes": {strings.Repeat("1;"+strings.Repeat("a", 1<<10)+"\r\n \r\n", 40), fault.ValidationError},
		"chunk ends in LF":     {"2\r\n{}\n0\r\n\r\n" + hidden, fault.ValidationError},
		"chunk is longer":      {"1\r\n{}\r\n0\r\n\r\n" + hidden, fault.ValidationError},
		"stalls in a size":     {"2", fault.RequestTimeout},
		"stalls in a chunk":    {size + "{", fault.RequestTimeout},
		"stalls after a chunk": {"2\r\n{}\r\n", fault.RequestTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t)
			l := st.dial(t)
			l.say(chunkedHead(anyKey) + c.body)
			l.hear(cutBy).expect(t, c.want.Status(), c.want)
			l.ended(cutBy)
			if n := st.handled.Load(); n != 0 {
				t.Errorf("%d handlers ran", n)
			}
		})
	}
}

// A chunk now and then does not hold a connection.
func TestASlowChunkedBodyIsCut(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	l.say(chunkedHead(anyKey))
	over, dripped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(dripped)
		for {
			select {
			case <-over:
				return
			case <-time.After(50 * time.Millisecond):
				l.say("1\r\n \r\n")
			}
		}
	}()
	defer func() { close(over); <-dripped }()
	l.hear(cutBy).expect(t, 408, fault.RequestTimeout)
}

// After a chunked body the connection closes, so that whoever saw its end elsewhere has no request after it.
func TestNothingRunsAfterAChunkedBody(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	l.say(chunkedHead(anyKey) + inChunks(`{"name":"ada"}`, 100) + head("GET", thing, anyKey))
	if r := l.hear(cutBy); r.StatusCode != 200 || !r.Close {
		t.Errorf("%d %s", r.StatusCode, r.text)
	}
	l.ended(cutBy)
	if n := st.handled.Load(); n != 1 {
		t.Errorf("%d handlers ran", n)
	}
}

// Two proxies may read such a header in two ways. It is no request, whoever sends it, and nothing behind it is one.
func TestALengthThatCanBeReadInTwoWays(t *testing.T) {
	hidden := head("GET", thing, anyKey)
	length := fmt.Sprintf("Content-Length: %d", len(hidden))
	body := inChunks(`{"name":"ada"}`, 100)
	const kept = "Connection: keep-alive"
	lower := strings.ToLower
	old := func(request string) string { return strings.Replace(request, "HTTP/1.1", "HTTP/1.0", 1) }
	for name, request := range map[string]string{
		"both":                     chunkedHead(anyKey, length) + body + hidden,
		"both, the length first":   head("PATCH", thing, anyKey, jsonType, length, chunkedCoding) + body + hidden,
		"both, no length":          chunkedHead(anyKey, "Content-Length: 0") + body + hidden,
		"both, small letters":      head("PATCH", thing, anyKey, jsonType, lower(length), lower(chunkedCoding)) + body,
		"two codings":              chunkedHead(anyKey, chunkedCoding) + body + hidden,
		"two codings, identity":    chunkedHead(anyKey, "Transfer-Encoding: identity") + body + hidden,
		"a list":                   head("PATCH", thing, anyKey, jsonType, "Transfer-Encoding: chunked, identity") + body + hidden,
		"identity first":           head("PATCH", thing, anyKey, jsonType, "Transfer-Encoding: identity, chunked") + body + hidden,
		"chunked twice":            head("PATCH", thing, anyKey, jsonType, "Transfer-Encoding: chunked, chunked") + body + hidden,
		"identity":                 head("PATCH", thing, anyKey, jsonType, "Transfer-Encoding: identity") + hidden,
		"identity and a length":    head("PATCH", thing, anyKey, jsonType, "Transfer-Encoding: identity", length) + hidden,
		"no coding":                head("PATCH", thing, anyKey, jsonType, "Transfer-Encoding:") + hidden,
		"another one":              head("PATCH", thing, anyKey, jsonType, "Transfer-Encoding: xchunked") + body + hidden,
		"in quotes":                head("PATCH", thing, anyKey, jsonType, `Transfer-Encoding: "chunked"`) + body + hidden,
		"with a parameter":         head("PATCH", thing, anyKey, jsonType, "Transfer-Encoding: chunked;q=1") + body + hidden,
		"space before the colon":   head("PATCH", thing, anyKey, jsonType, "Transfer-Encoding : chunked") + body + hidden,
		"HTTP/1.0":                 old(chunkedHead(anyKey)) + body + hidden,
		"HTTP/1.0, both":           old(chunkedHead(anyKey, length)) + body + hidden,
		"HTTP/1.0, kept alive":     old(chunkedHead(anyKey, kept)) + body + hidden,
		"folded":                   head("PATCH", thing, anyKey, jsonType, "Transfer-Encoding:\r\n chunked") + body + hidden,
		"folded by a tab":          head("PATCH", thing, anyKey, jsonType, "Transfer-Encoding:\r\n\tchunked") + body + hidden,
		"folded, then more":        head("PATCH", thing, anyKey, jsonType, "Transfer-Encoding: chunked\r\n ") + body + hidden,
		"a folded length":          head("PATCH", thing, anyKey, jsonType, strings.Replace(length, ": ", ":\r\n ", 1)) + hidden,
		"folded into another line": head("PATCH", thing, anyKey, jsonType, "X-A: b\r\n Transfer-Encoding: chunked") + body + hidden,
		"a length in a folded one": head("PATCH", thing, anyKey, jsonType, "X-A: b\r\n "+length) + hidden,
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t)
			l := st.dial(t)
			l.say(request)
			l.hear(cutBy).expect(t, 400, fault.ValidationError)
			l.ended(cutBy)
			if n := st.handled.Load(); n != 0 {
				t.Errorf("%d handlers ran", n)
			}
		})
	}
}

// A client of HTTP/1.0 would take a 100 for the answer.
func TestHTTP10IsNotInvited(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	request := withBody("PATCH", thing, anyKey, `{"name":"ada"}`)
	request = strings.Replace(request, " HTTP/1.1\r\n", " HTTP/1.0\r\nExpect: 100-continue\r\n", 1)
	l.say(request)
	if r := l.hear(cutBy); r.StatusCode != 200 || !strings.Contains(r.text, "ada") {
		t.Errorf("%d %s", r.StatusCode, r.text)
	}
	l.ended(cutBy)
}
