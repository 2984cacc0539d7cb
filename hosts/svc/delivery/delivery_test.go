package delivery_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/webhook"
	"github.com/pgherd/pgherd/hosts/svc/delivery"
)

const (
	secret    = "whsec_0123456789ABCDEFGHIJKLMNOPQRSTUV"
	timestamp = "1767605400"
	event     = `{"event":"backup.succeeded"}`
)

var signedAt = time.Unix(1767605400, 0)

func TestTheSignaturesOfThePage(t *testing.T) {
	text, err := os.ReadFile("../../../core/webhook/testdata/signatures.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name, Secret, Timestamp, Signature string
		BodyBase64                         []byte
		Valid                              bool
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) == 0 {
		t.Fatal("there are none")
	}
	for _, v := range vectors {
		d := delivery.Delivery{Timestamp: v.Timestamp, Signature: v.Signature, Body: v.BodyBase64}
		if err := d.Check(v.Secret, time.Now(), 0); (err == nil) != v.Valid {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

func TestCheckSaysWhatIsWrong(t *testing.T) {
	right := delivery.Delivery{Timestamp: timestamp, Signature: webhook.Sign(secret, timestamp, []byte(event)), Body: []byte(event)}
	with := func(change func(*delivery.Delivery)) delivery.Delivery {
		d := right
		change(&d)
		return d
	}
	for name, c := range map[string]struct {
		delivery delivery.Delivery
		age      time.Duration
		says     string
	}{
		"just made":             {right, 0, ""},
		"as old as allowed":     {right, 5 * time.Minute, ""},
		"as far ahead":          {right, -5 * time.Minute, ""},
		"too old":               {right, time.Hour, "the signature is right, but was made 1h0m0s ago, and 5m0s is allowed"},
		"from the future":       {right, -time.Hour, "made 1h0m0s in the future"},
		"another body":          {with(func(d *delivery.Delivery) { d.Body = []byte("{}") }), 0, "not that of this body"},
		"another time":          {with(func(d *delivery.Delivery) { d.Timestamp = "1767605401" }), 0, "not that of this body"},
		"a line end":            {with(func(d *delivery.Delivery) { d.Body = []byte(event + "\r\n") }), 0, "without the line end"},
		"no timestamp":          {with(func(d *delivery.Delivery) { d.Timestamp = "" }), 0, "is no Unix time"},
		"a date":                {with(func(d *delivery.Delivery) { d.Timestamp = "2026-01-05" }), 0, "is no Unix time"},
		"a negative time":       {with(func(d *delivery.Delivery) { d.Timestamp = "-1" }), 0, "is no Unix time"},
		"no signature":          {with(func(d *delivery.Delivery) { d.Signature = "" }), 0, `is not "v1="`},
		"another version":       {with(func(d *delivery.Delivery) { d.Signature = "v2" + d.Signature[2:] }), 0, `is not "v1="`},
		"capitals":              {with(func(d *delivery.Delivery) { d.Signature = "v1=" + strings.Repeat("A", 64) }), 0, `not "v1="`},
		"too short a signature": {with(func(d *delivery.Delivery) { d.Signature = d.Signature[:66] }), 0, `not "v1="`},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.delivery.Check(secret, signedAt.Add(c.age), 5*time.Minute)
			if said := fmt.Sprint(err); (err == nil) != (c.says == "") || !strings.Contains(said, c.says) && err != nil {
				t.Errorf("it says %s", said)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Error("it tells the secret")
			}
		})
	}
	if err := right.Check("whsec_another", signedAt, time.Minute); err == nil {
		t.Error("another secret is right, too")
	}
}

func TestParseReadsMessages(t *testing.T) {
	const header = "Service-Timestamp: 1767605400\nService-Signature: v1=ab\n"
	asSent := "POST /hook HTTP/1.1\r\nHost: h\r\n" + strings.ReplaceAll(header, "\n", "\r\n") + "\r\n"
	for name, c := range map[string]struct {
		message, body, fails string
	}{
		"fields and body":        {header + "\n" + event, event, ""},
		"a request":              {asSent + event, event, ""},
		"small letters":          {strings.ToLower(header) + "\n" + event, event, ""},
		"a length":               {header + "Content-Length: 4\n\nbody and more", "body", ""},
		"no body":                {header + "\n", "", ""},
		"chunks":                 {header + "Transfer-Encoding: chunked\n\n4\r\nbody\r\n0\r\n\r\n", "body", ""},
		"line ends of the body":  {header + "\n a\r\nb\n", " a\r\nb\n", ""},
		"nothing":                {"", "", "does not begin with the header fields"},
		"a body alone":           {event, "", "does not begin with the header fields"},
		"no empty line":          {header, "", "does not begin with the header fields"},
		"a body cut off":         {header + "Content-Length: 5\n\nbody", "", "its body has 4 bytes, and its Content-Length is 5"},
		"no length":              {header + "Content-Length: -5\n\nbody", "", "its Content-Length is no length"},
		"broken chunks":          {header + "Transfer-Encoding: chunked\n\n9\r\nbody", "", "its chunked body is broken"},
		"no signature":           {"Service-Timestamp: 1\n\n" + event, "", "0 fields Service-Signature"},
		"two timestamps":         {"Service-Timestamp: 1\n" + header + "\n" + event, "", "2 fields Service-Timestamp"},
		"a field without a name": {": 1\n" + header + "\n" + event, "", "does not begin with the header fields"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := delivery.Parse([]byte(c.message))
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("it says %v", err)
				}
				return
			}
			if err != nil || string(d.Body) != c.body || d.Timestamp != timestamp || d.Signature != "v1=ab" {
				t.Errorf("it is %q, %+v, %v", d.Body, d, err)
			}
		})
	}
}

func TestReadIsBounded(t *testing.T) {
	if text, err := delivery.Read(bytes.NewReader(make([]byte, delivery.MaxSize))); err != nil || len(text) != delivery.MaxSize {
		t.Errorf("%d, %v", len(text), err)
	}
	if _, err := delivery.Read(bytes.NewReader(make([]byte, delivery.MaxSize+1))); err == nil {
		t.Error("a longer one is read")
	}
}

// A message that was signed and is parsed is valid, whatever its body; what is no message is refused, and never a panic.
func FuzzDelivery(f *testing.F) {
	f.Add([]byte("POST /hook HTTP/1.1\r\nService-Timestamp: 1767605400\r\nService-Signature: v1=ab\r\n\r\n{}"), []byte(event))
	f.Add([]byte("Service-Timestamp: 1\nService-Signature: v1=\nTransfer-Encoding: chunked\n\n2\r\n{}\r\n0\r\n\r\n"), []byte("\n"))
	f.Add([]byte("service-timestamp: 1\nservice-signature: v1=\ncontent-length: 2\n\n{}"), []byte{})
	f.Fuzz(func(t *testing.T, message, body []byte) {
		if d, err := delivery.Parse(message); err == nil {
			if len(d.Body) > len(message) {
				t.Errorf("the body is longer than the message: %q", d.Body)
			}
			if d.Signature != webhook.Sign(secret, d.Timestamp, d.Body) && d.Check(secret, signedAt, 0) == nil {
				t.Errorf("this is valid: %+v", d)
			}
		}
		header := "Service-Timestamp: " + timestamp + "\r\nService-Signature: " + webhook.Sign(secret, timestamp, body) + "\r\n\r\n"
		d, err := delivery.Parse(append([]byte(header), body...))
		if err != nil || !bytes.Equal(d.Body, body) {
			t.Fatalf("%q, %v", d.Body, err)
		}
		if err := d.Check(secret, signedAt, time.Second); err != nil {
			t.Error(err)
		}
	})
}
