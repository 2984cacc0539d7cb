package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/certfile"
	"github.com/pgherd/pgherd/core/fault"
)

// These cases hold fasthttp to what front.go leans on: whatever it makes of a request, nothing of a body is read before the
// request has been admitted, and nothing of a body runs as a request.

const jsonType = "Content-Type: application/json"

func TestStallingClientIsAnsweredAtOnce(t *testing.T) {
	st := open(t)
	stalls := map[string][]string{
		"length, no body": {"Content-Type: application/json", "Content-Length: 20"},
		"huge length":     {"Content-Type: application/json", "Content-Length: 99999999999"},
		"chunked":         {"Content-Type: application/json", "Transfer-Encoding: chunked"},
		"expect":          {"Content-Type: application/json", "Content-Length: 20", "Expect: 100-continue"},
		"expect chunked":  {"Content-Type: application/json", "Transfer-Encoding: chunked", "Expect: 100-continue"},
		"multipart":       {"Content-Type: multipart/form-data; boundary=x", "Content-Length: 20"},
	}
	for name, lines := range stalls {
		for key, want := range map[string]fault.Code{
			"": fault.Unauthorized, "wrong": fault.Unauthorized, "spent": fault.RateLimited, "free": fault.PlanAPIAccessRequired,
		} {
			t.Run(name+" key "+key, func(t *testing.T) {
				l := st.dial(t)
				l.say(head("PATCH", thing, key, lines...))
				r := l.hear(atOnce)
				r.expect(t, want.Status(), want)
				if !r.Close {
					t.Error("the connection stays open with an unread body")
				}
			})
		}
	}
}

func TestStallingClientGetsLaterChecksAtOnceToo(t *testing.T) {
	st := open(t)
	for name, c := range map[string]struct {
		path, key, content, length string
		want                       fault.Code
	}{
		"malformed ID": {"/api/v1/things/x", anyKey, "application/json", "Content-Length: 9", fault.ValidationError},
		"out of scope": {"/api/v1/things/" + foreignID, anyKey, "application/json", "Content-Length: 9", fault.DatabaseNotFound},
		"media type":   {thing, anyKey, "text/plain", "Content-Length: 9", fault.UnsupportedMediaType},
		"too long":     {thing, anyKey, "application/json", "Content-Length: 65537", fault.PayloadTooLarge},
		"chunked":      {thing, anyKey, "text/plain", "Transfer-Encoding: chunked", fault.UnsupportedMediaType},
	} {
		t.Run(name, func(t *testing.T) {
			l := st.dial(t)
			l.say(head("PATCH", c.path, c.key, "Content-Type: "+c.content, c.length))
			l.hear(atOnce).expect(t, c.want.Status(), c.want)
		})
	}
}

func TestRequestArrivesByteByByte(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	for _, b := range []byte(withBody("PATCH", thing, anyKey, `{"name":"ada"}`)) {
		l.say(string(b))
	}
	if r := l.hear(cutBy); r.StatusCode != 200 || !strings.Contains(r.text, "ada") {
		t.Fatalf("got %d %s", r.StatusCode, r.text)
	}
}

func TestExpectIsAnsweredOnlyWhenTheBodyIsWanted(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	body := `{"name":"ada"}`
	l.say(head("PATCH", thing, anyKey,
		"Content-Type: application/json", "Expect: 100-Continue", fmt.Sprintf("Content-Length: %d", len(body))))
	if r := l.hear(atOnce); r.StatusCode != http.StatusContinue {
		t.Fatalf("got %d, want 100", r.StatusCode)
	}
	l.say(body)
	if r := l.hear(atOnce); r.StatusCode != 200 || !strings.Contains(r.text, "ada") {
		t.Fatalf("got %d %s", r.StatusCode, r.text)
	}
	l.say(head("GET", thing, anyKey))
	if r := l.hear(atOnce); r.StatusCode != 200 {
		t.Fatalf("the connection is of no more use: %d", r.StatusCode)
	}
}

func TestKeepAlive(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	for i := range 5 {
		l.say(withBody("PATCH", thing, anyKey, fmt.Sprintf(`{"name":"n%d"}`, i)))
		if r := l.hear(atOnce); r.StatusCode != 200 || !strings.Contains(r.text, fmt.Sprintf("n%d", i)) {
			t.Fatalf("request %d: %d %s", i, r.StatusCode, r.text)
		}
		l.say(head("GET", thing, ""))
		l.hear(atOnce).expect(t, 401, fault.Unauthorized)
	}
}

func TestPipelining(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	l.say(withBody("PATCH", thing, anyKey, `{"name":"one"}`) + head("GET", thing, anyKey) +
		withBody("PATCH", thing, anyKey, `{"name":"two"}`) + withBody("POST", thing+"/run", anyKey, ""))
	for _, want := range []string{`"one"`, `"name":""`, `"two"`, `"name":""`} {
		if r := l.hear(atOnce); r.StatusCode != 200 || !strings.Contains(r.text, want) {
			t.Fatalf("got %d %s, want %s", r.StatusCode, r.text, want)
		}
	}
}

func TestPipelinedStallHoldsNoEarlierAnswer(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	l.say(head("GET", thing, anyKey) + head("PATCH", thing, anyKey, "Content-Type: application/json", "Content-Length: 20"))
	if r := l.hear(atOnce); r.StatusCode != 200 {
		t.Fatalf("got %d", r.StatusCode)
	}
	l.hear(cutBy).expect(t, 408, fault.RequestTimeout)
}

// A body that was not read must never run as a request of its own.
func TestUnreadBytesAreNoSecondRequest(t *testing.T) {
	smuggled := head("GET", thing, anyKey)
	length := fmt.Sprintf("Content-Length: %d", len(smuggled))
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)
	for name, c := range map[string]struct {
		request string
		want    fault.Code
	}{
		"401":             {head("PATCH", thing, "", length) + smuggled, fault.Unauthorized},
		"429":             {head("PATCH", thing, "spent", length) + smuggled, fault.RateLimited},
		"404":             {head("PATCH", "/api/v1/things/"+foreignID, anyKey, length) + smuggled, fault.DatabaseNotFound},
		"415":             {head("PATCH", thing, anyKey, length) + smuggled, fault.UnsupportedMediaType},
		"chunked 400":     {head("PATCH", thing, anyKey, jsonType, "Transfer-Encoding: chunked") + chunk, fault.InvalidJSON},
		"chunked 415":     {head("PATCH", thing, anyKey, "Transfer-Encoding: chunked") + chunk, fault.UnsupportedMediaType},
		"chunked 401":     {head("PATCH", thing, "", "Transfer-Encoding: chunked") + chunk, fault.Unauthorized},
		"none accepted":   {head("POST", thing+"/run", anyKey, length) + smuggled, fault.ValidationError},
		"none, chunked":   {head("POST", thing+"/run", anyKey, "Transfer-Encoding: chunked") + chunk, fault.ValidationError},
		"GET with a body": {head("GET", thing, anyKey, length) + smuggled, fault.ValidationError},
		"unknown route":   {head("POST", "/nowhere", anyKey, length) + smuggled, fault.RouteNotFound},
		"wrong method":    {head("PUT", thing, anyKey, length) + smuggled, fault.MethodNotAllowed},
		"unknown method":  {head("FROB", thing, anyKey, length) + smuggled, fault.MethodNotAllowed},
		"both lengths":    {head("PATCH", thing, "", "Transfer-Encoding: chunked", length) + chunk, fault.ValidationError},
		"two lengths":     {head("PATCH", thing, anyKey, "Content-Length: 0", length) + smuggled, fault.ValidationError},
		"forged note":     {head("PATCH", thing, "", noteLength+": 0", length) + smuggled, fault.Unauthorized},
		"forged, no body": {head("PATCH", thing, "", noteLength+": 99"), fault.Unauthorized},
		"odd transfer":    {head("PATCH", thing, "", "Transfer-Encoding: gzip, chunked") + chunk, fault.ValidationError},
		"negative length": {head("PATCH", thing, anyKey, "Content-Length: -1") + smuggled, fault.ValidationError},
		"expect unread":   {head("PATCH", thing, "", "Expect: 100-continue", length) + smuggled, fault.Unauthorized},
		"stream unread":   {head("PUT", "/api/v1/things/"+foreignID+"/upload", anyKey, length) + smuggled, fault.DatabaseNotFound},
		"space in a name": {head("PATCH", thing, "", "Content-Length : 5", length) + smuggled, fault.ValidationError},
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t)
			l := st.dial(t)
			l.say(c.request)
			l.hear(cutBy).expect(t, c.want.Status(), c.want)
			if name == "forged, no body" {
				l.say(head("GET", thing, anyKey))
				l.hear(atOnce)
				return
			}
			l.ended(cutBy)
			if n := st.handled.Load(); n != 0 {
				t.Errorf("%d handlers ran", n)
			}
		})
	}
}

func TestWhatIsNoRequestGetsAFixedAnswer(t *testing.T) {
	secret := "s3cr3t"
	for name, c := range map[string]struct {
		text   string
		status int
		code   fault.Code
	}{
		"garbage":        {secret + "\x00\x01\x02\r\n\r\n", 400, fault.ValidationError},
		"no version":     {"GET /" + secret + "\r\n\r\n", 400, fault.ValidationError},
		"bad header":     {"GET / HTTP/1.1\r\nHost: a\r\nA b\x01c: " + secret + "\r\n\r\n", 400, fault.ValidationError},
		"header too big": {head("GET", "/", "", "X-Long: "+secret+strings.Repeat("x", 9<<10)), 431, fault.HeaderTooLarge},
		"line too long":  {"GET /" + strings.Repeat(secret, 9<<10) + " HTTP/1.1\r\n\r\n", 431, fault.HeaderTooLarge},
		"tls hello":      {"\x16\x03\x01\x02\x00\x01\x00" + strings.Repeat("\x00", 60) + "\r\n\r\n", 400, fault.ValidationError},
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t)
			l := st.dial(t)
			l.say(c.text)
			r := l.hear(cutBy)
			r.expect(t, c.status, c.code)
			if strings.Contains(r.text, secret) {
				t.Errorf("the answer repeats what was sent: %s", r.text)
			}
			l.ended(cutBy)
		})
	}
}

// drips sends a byte now and then until the server closes, which must not take long.
func (l *line) drips(text string) {
	l.t.Helper()
	for begin := time.Now(); time.Since(begin) < cutBy; time.Sleep(50 * time.Millisecond) {
		if _, err := io.WriteString(l.Conn, text); err != nil {
			return
		}
	}
	l.t.Fatalf("20 times %d bytes a second held the connection for %v", len(text), cutBy)
}

func TestSlowHeaderIsCut(t *testing.T) {
	for name, before := range map[string]string{"first request": "", "second request": head("GET", thing, anyKey)} {
		t.Run(name, func(t *testing.T) {
			st := open(t)
			l := st.dial(t)
			l.say(before + "GET " + thing + " HTTP/1.1\r\n")
			l.drips("X")
		})
	}
}

func TestSlowHandshakeIsCut(t *testing.T) {
	certFile, keyFile, _ := selfSigned(t)
	pair := TLS(check.Must(certfile.Open("the API", certFile, keyFile))(t).Certificate)
	st := open(t, func(c *Config) { c.TLS = pair })
	l := st.dial(t)
	l.say("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc") // the beginning of a long ClientHello
	l.drips("\x03")
}

// TestClientThatTakesNoAnswersIsCut sends requests for as long as the server reads them, and reads nothing.
func TestClientThatTakesNoAnswersIsCut(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	_ = l.SetWriteDeadline(time.Now().Add(3 * cutBy))
	requests := strings.Repeat(head("GET", thing, anyKey), 1000)
	var err error
	for err == nil {
		_, err = io.WriteString(l.Conn, requests)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection is still open")
	}
}

func TestSilentConnectionIsCut(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	l.ended(cutBy)
}

func TestSlowBodyIsCut(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	l.say(head("PATCH", thing, anyKey, "Content-Type: application/json", "Content-Length: 1000"))
	stop := make(chan struct{})
	dripped := make(chan struct{})
	go func() {
		defer close(dripped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				l.say("{")
			}
		}
	}()
	defer func() { close(stop); <-dripped }()
	l.hear(cutBy).expect(t, 408, fault.RequestTimeout)
}

func TestSlowUploadIsCut(t *testing.T) {
	st := open(t, func(c *Config) { c.Limits.Upload.Rate = 1 << 20 })
	l := st.dial(t)
	l.say(head("PUT", thing+"/upload", anyKey, "Content-Length: 1000000"))
	l.say(strings.Repeat("x", 1000))
	l.hear(cutBy).expect(t, 408, fault.RequestTimeout)
}

func TestUploadStreams(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	body := strings.Repeat("x", 3<<20)
	l.say(head("PUT", thing+"/upload", anyKey, fmt.Sprintf("Content-Length: %d", len(body))) + body)
	if r := l.hear(cutBy); r.text != fmt.Sprintf(`{"n":%d}`, len(body)) {
		t.Fatalf("got %s", r.text)
	}
	l.say(head("PUT", thing+"/upload", anyKey, "Transfer-Encoding: chunked", "Expect: 100-continue"))
	if r := l.hear(atOnce); r.StatusCode != 100 {
		t.Fatalf("got %d", r.StatusCode)
	}
	l.say("5\r\nhello\r\n3\r\nyou\r\n0\r\n\r\n")
	if r := l.hear(cutBy); r.text != `{"n":8}` {
		t.Fatalf("got %s", r.text)
	}
	l.ended(cutBy) // as after every chunked body
}

// The kernel resets a socket that is closed with unread bytes, and the reset can overtake the answer: a client that is still
// sending then reports a broken connection in the answer's place.
func TestEarlyCloseStillDeliversTheAnswer(t *testing.T) {
	st := open(t)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	upload := bytes.Repeat([]byte("x"), 4<<20)
	for i := range 40 {
		res, err := client.Post("http://"+st.address+thing+"/run", "application/json", bytes.NewReader(upload))
		if err != nil {
			t.Fatalf("upload %d: %v", i, err)
		}
		_ = res.Body.Close()
		if res.StatusCode != 401 {
			t.Fatalf("upload %d: got %d", i, res.StatusCode)
		}
	}
}

func TestEmptyChunkedBodyIsEmpty(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	l.say(head("POST", thing+"/run", anyKey, "Transfer-Encoding: chunked") + "0\r\n\r\n")
	if r := l.hear(atOnce); r.StatusCode != 200 {
		t.Fatalf("got %d %s", r.StatusCode, r.text)
	}
	l.ended(cutBy)
}
