package mailer

import (
	"bytes"
	"mime"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pgherd/pgherd/acceptance/check"
	message "github.com/pgherd/pgherd/core/mail"
)

// Whatever names customers have chosen: a message has the same headers, goes to one address, and the standard library reads of it
// the subject that was meant.
func FuzzMessage(f *testing.F) {
	for _, seed := range [][2]string{
		{"pat@example.com", "Pat invites you to the database “shop”"}, {"pat@example.com, eve@example.com", "x"},
		{"pat@example.com\r\nBcc: eve@example.com", "a\r\nBcc: eve@example.com\r\n\r\nbody"}, {"<pat@example.com>", "=?utf-8?q?x?="},
		{`"pat eve"@example.com`, strings.Repeat("é", 300)}, {"pat@[127.0.0.1]", "\xff\x00\u2028"}, {"pat@exämple.com", " "},
	} {
		f.Add(seed[0], seed[1], "text\r\n.\r\n"+seed[1])
	}
	from := check.Must(parseSender("The service <service@example.com>"))(f)
	f.Fuzz(func(t *testing.T, to, subject, text string) {
		m := message.Message{
			ID: "01234567-89ab-4cde-8f01-23456789abcd", At: time.Unix(1_772_539_200, 0), To: to, Subject: subject, Text: text, HTML: text,
		}
		made, err := from.write(m)
		if err != nil {
			return
		}
		var out bytes.Buffer
		check.Must(made.WriteTo(&out))(t)
		read, err := mail.ReadMessage(&out)
		if err != nil {
			t.Fatalf("%q: %v", m, err)
		}
		for name := range read.Header {
			if !slices.Contains(headers, name) {
				t.Errorf("%q has the header %s", m, name)
			}
		}
		all, err := read.Header.AddressList("To")
		if err != nil || len(all) != 1 || all[0].Address != to {
			t.Errorf("%q goes to %v, %v", m, all, err)
		}
		if id := read.Header.Get("Message-Id"); id != "<01234567-89ab-4cde-8f01-23456789abcd@example.com>" {
			t.Errorf("%q is %s", m, id)
		}
		if utf8.ValidString(subject) && !strings.ContainsFunc(subject, unicode.IsControl) && strings.TrimSpace(subject) == subject {
			if got, err := new(mime.WordDecoder).DecodeHeader(read.Header.Get("Subject")); err != nil || got != subject {
				t.Errorf("the subject %q is read as %q, %v", subject, got, err)
			}
		}
	})
}

// headers are those of a message.
var headers = []string{"From", "To", "Subject", "Date", "Message-Id", "Mime-Version", "Content-Type", "Auto-Submitted"}
