package mailer_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/eml"
	"github.com/pgherd/pgherd/acceptance/mailserver"
	"github.com/pgherd/pgherd/adapters/mailer"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
)

const (
	token    = "t0kenOfAnInvitation"
	password = "pässword of the operator"
	mailID   = id.MailID("11111111-2222-4333-8444-555555555555")
)

func letter() mail.Message {
	return mail.Message{
		ID: mailID, At: time.Date(2026, time.November, 22, 9, 0, 0, 0, time.UTC), To: "bob@example.com",
		Subject: "Ada invites you to “Shop”",
		Text:    "Hello,\n\n.a line with a dot\nhttps://app.example.org/join#token=" + token + "\n",
		HTML:    "<p>Grüße <a href=\"https://app.example.org/join#token=" + token + "\">join</a></p>\n",
	}
}

func listen(t *testing.T, o mailserver.Options) *mailserver.Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s := check.Must(mailserver.Listen(o))(t)
	t.Cleanup(func() { check.NoError(t, s.Close()) })
	return s
}

// client is a mailer that trusts the server, after change.
func client(t *testing.T, s *mailserver.Server, change ...func(*mailer.Options)) *mailer.SMTP {
	t.Helper()
	o := mailer.Options{
		Address: s.Address, Security: mailer.StartTLS, From: "The service <no-reply@service.example>",
		CA: check.Must(os.ReadFile(s.CAFile))(t), Handshake: 5 * time.Second, Transaction: 5 * time.Second,
	}
	for _, c := range change {
		c(&o)
	}
	return check.Must(mailer.NewSMTP(o))(t)
}

func secured(by mailer.Security) func(*mailer.Options) {
	return func(o *mailer.Options) { o.Security = by }
}

func as(user, password string) func(*mailer.Options) {
	return func(o *mailer.Options) { o.User, o.Password = user, password }
}

// arrived is the only mail that has arrived, and reads as it was written.
func arrived(t *testing.T, s *mailserver.Server) mailserver.Arrival {
	t.Helper()
	list := s.Arrivals()
	if len(list) != 1 {
		t.Fatalf("%d mails have arrived", len(list))
	}
	got, want := check.Must(eml.Parse(bytes.NewReader(list[0].Raw)))(t), letter()
	if got != (eml.Mail{
		MessageID: "<" + string(mailID) + "@service.example>", To: want.To, Subject: want.Subject, Text: want.Text, HTML: want.HTML,
	}) {
		t.Errorf("it reads %+v", got)
	}
	return list[0]
}

func TestMailsArrive(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]struct {
		server mailserver.Options
		client []func(*mailer.Options)
	}{
		"STARTTLS":           {mailserver.Options{}, nil},
		"TLS":                {mailserver.Options{TLS: true}, []func(*mailer.Options){secured(mailer.TLS)}},
		"STARTTLS and PLAIN": {mailserver.Options{User: "u", Password: password}, []func(*mailer.Options){as("u", password)}},
		"STARTTLS and LOGIN": {
			mailserver.Options{User: "u", Password: password, LoginOnly: true}, []func(*mailer.Options){as("u", password)},
		},
		"TLS and PLAIN": {
			mailserver.Options{TLS: true, User: "u", Password: password}, []func(*mailer.Options){secured(mailer.TLS), as("u", password)},
		},
		"no TLS, on this machine": {mailserver.Options{Plain: true}, []func(*mailer.Options){secured(mailer.Plain)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := listen(t, v.server)
			check.NoError(t, client(t, s, v.client...).Send(t.Context(), letter()))
			got := arrived(t, s)
			if got.Secured == v.server.Plain || got.User != v.server.User {
				t.Errorf("TLS: %t; user %q", got.Secured, got.User)
			}
			if got.From != "no-reply@service.example" || got.To != "bob@example.com" {
				t.Errorf("%+v", got)
			}
			for _, line := range []string{
				"Date: Sun, 22 Nov 2026 09:00:00 +0000\r\n", "From: \"The service\" <no-reply@service.example>\r\n",
				"To: <bob@example.com>\r\n", "Auto-Submitted: auto-generated\r\n",
			} {
				if !bytes.Contains(got.Raw, []byte(line)) {
					t.Errorf("%q is missing in\n%s", line, got.Raw)
				}
			}
		})
	}
}

// verdict is what becomes of a mail that was not taken.
type verdict string

const (
	later    verdict = "later" // the operator or time can mend it
	doubtful verdict = "doubtful"
	final    verdict = "final"
)

func verdictOf(err error) verdict {
	var refusal *mail.Refusal
	switch {
	case !errors.As(err, &refusal):
		return later
	case refusal.Doubtful:
		return doubtful
	}
	return final
}

// failed sends, which must fail with an error that has neither token nor password in it. No connection may stay open.
func failed(t *testing.T, s *mailserver.Server, m *mailer.SMTP, so verdict, want string) {
	t.Helper()
	err := m.Send(t.Context(), letter())
	if err == nil || verdictOf(err) != so || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v (%s); want %q (%s)", err, verdictOf(err), want, so)
	}
	for _, secret := range []string{token, password, "no-reply@service.example", "bob@"} {
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%q stands in %v", secret, err)
		}
	}
	check.Eventually(t, "a connection stays open", func() bool { return s.Open() == 0 })
	if n := len(s.Arrivals()); n != 0 {
		t.Errorf("%d mails have arrived", n)
	}
}

func TestServersRefuse(t *testing.T) {
	t.Parallel()
	echo := "what you sent was " + token + " for bob@example.com from no-reply@service.example"
	bare := func(code int) func(*smtp.Conn) error {
		return func(*smtp.Conn) error {
			return &smtp.SMTPError{Code: code, EnhancedCode: smtp.NoEnhancedCode, Message: echo}
		}
	}
	for name, v := range map[string]struct {
		server mailserver.Options
		so     verdict
		want   string
	}{
		"a session, for now":  {mailserver.Options{OnConnect: mailserver.Refuse(421, "too busy")}, later, "too busy"},
		"a session":           {mailserver.Options{OnConnect: mailserver.Refuse(554, "not from you")}, later, "not from you"},
		"the sender, for now": {mailserver.Options{OnMail: mailserver.Refuse(451, "later")}, later, "later"},
		"the sender":          {mailserver.Options{OnMail: mailserver.Refuse(550, "who is that")}, later, "who is that"},
		"the address, for now": {
			mailserver.Options{OnRcpt: mailserver.Refuse(450, echo, 2, 1)}, later, "450 4.2.1 to sending SMTP RCPT TO command",
		},
		"the address":          {mailserver.Options{OnRcpt: mailserver.Refuse(550, echo, 1, 1)}, final, "the address (550 5.1.1)"},
		"the address, bare":    {mailserver.Options{OnRcpt: bare(550)}, doubtful, "refuses the address (550)"},
		"the address, somehow": {mailserver.Options{OnRcpt: mailserver.Refuse(553, echo)}, doubtful, "the address (553 5.0.0)"},
		"the mail, bare":       {mailserver.Options{OnData: bare(554)}, doubtful, "refuses the mail (554)"},
		"relaying":             {mailserver.Options{OnRcpt: mailserver.Refuse(554, echo, 7, 1)}, later, "554 5.7.1"},
		"without a log-in":     {mailserver.Options{OnRcpt: mailserver.Refuse(530, echo)}, later, "530"},
		"the mail, for now":    {mailserver.Options{OnData: mailserver.Refuse(452, echo)}, later, "452"},
		"the mail":             {mailserver.Options{OnData: mailserver.Refuse(554, echo, 6, 0)}, final, "refuses the mail (554 5.6.0)"},
		"the mail by policy":   {mailserver.Options{OnData: mailserver.Refuse(550, echo, 7, 1)}, later, "550 5.7.1"},
		"a log-in that is missing": {
			mailserver.Options{User: "u", Password: "p"}, later, "530",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := listen(t, v.server)
			failed(t, s, client(t, s), v.so, v.want)
		})
	}
}

func TestConnectionsFail(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	hurry := func(o *mailer.Options) { o.Handshake, o.Transaction = 300*time.Millisecond, 300*time.Millisecond }
	for name, v := range map[string]struct {
		server mailserver.Options
		client []func(*mailer.Options)
		want   string
	}{
		"a wrong password": {
			mailserver.Options{User: "u", Password: "another"}, []func(*mailer.Options){as("u", password)}, "refuses the log-in (535)",
		},
		"no log-in offered": {mailserver.Options{}, []func(*mailer.Options){as("u", password)}, "AUTH"},
		"no STARTTLS":       {mailserver.Options{Plain: true}, nil, "STARTTLS"},
		"no STARTTLS, log-in": {
			mailserver.Options{Plain: true, User: "u", Password: password}, []func(*mailer.Options){as("u", password)}, "STARTTLS",
		},
		"TLS where STARTTLS is": {
			mailserver.Options{}, []func(*mailer.Options){secured(mailer.TLS), hurry}, "connecting to the mail server",
		},
		"STARTTLS where TLS is": {mailserver.Options{TLS: true}, []func(*mailer.Options){hurry}, "connecting to the mail server"},
		"another name in the certificate": {
			mailserver.Options{Certified: []string{"other.example"}}, nil, "certificate",
		},
		"another name, TLS": {
			mailserver.Options{TLS: true, Certified: []string{"other.example"}}, []func(*mailer.Options){secured(mailer.TLS)},
			"certificate",
		},
		"an unknown authority": {
			mailserver.Options{}, []func(*mailer.Options){func(o *mailer.Options) { o.CA = nil }}, "unknown authority",
		},
		"hangs up at the sender":  {mailserver.Options{OnMail: mailserver.Drop}, nil, "MAIL FROM"},
		"hangs up at the address": {mailserver.Options{OnRcpt: mailserver.Drop}, nil, "RCPT TO"},
		"hangs up in the data":    {mailserver.Options{OnData: mailserver.Drop}, nil, "DATA"},
		"is silent at the beginning": {
			mailserver.Options{OnConnect: mailserver.Hang(ended)}, []func(*mailer.Options){hurry}, "timeout",
		},
		"is silent at the address": {mailserver.Options{OnRcpt: mailserver.Hang(ended)}, []func(*mailer.Options){hurry}, "RCPT TO"},
		"is silent in the data":    {mailserver.Options{OnData: mailserver.Hang(ended)}, []func(*mailer.Options){hurry}, "DATA"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := listen(t, v.server)
			m := client(t, s, v.client...)
			began := time.Now()
			err := m.Send(t.Context(), letter())
			var refusal *mail.Refusal
			if err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), v.want) {
				t.Errorf("got %v; want %q", err, v.want)
			}
			if text := fmt.Sprint(err); strings.Contains(text, token) || strings.Contains(text, password) {
				t.Error("a secret stands in", text)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("it took %s", took)
			}
			if len(s.Arrivals()) != 0 {
				t.Error("the mail has arrived")
			}
		})
	}
}

// A server that takes the mail and then says nothing more has taken the mail.
func TestSilenceAfterTheMail(t *testing.T) {
	t.Parallel()
	listener := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { check.NoError(t, listener.Close()) })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		lines := bufio.NewScanner(conn)
		for _, answer := range []string{"220 hello", "250 hello", "250 sender", "250 recipient", "354 go on"} {
			fmt.Fprintf(conn, "%s\r\n", answer)
			lines.Scan()
		}
		for lines.Text() != "." && lines.Scan() {
		}
		fmt.Fprint(conn, "250 taken\r\n")
	}()
	m := check.Must(mailer.NewSMTP(mailer.Options{
		Address: listener.Addr().String(), Security: mailer.Plain, From: "no-reply@service.example",
	}))(t)
	began := time.Now()
	check.NoError(t, m.Send(t.Context(), letter()))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestTheCallersContextEndsAnAttempt(t *testing.T) {
	t.Parallel()
	ended, waits := make(chan struct{}), make(chan struct{}, 1)
	t.Cleanup(func() { close(ended) })
	for name, o := range map[string]mailserver.Options{
		"at the address": {OnRcpt: func(c *smtp.Conn) error { waits <- struct{}{}; return mailserver.Hang(ended)(c) }},
		"in the data":    {OnData: func(c *smtp.Conn) error { waits <- struct{}{}; return mailserver.Hang(ended)(c) }},
	} {
		s := listen(t, o)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-waits; cancel() }()
		began := time.Now()
		err := client(t, s).Send(ctx, letter())
		if !errors.Is(err, context.Canceled) || time.Since(began) > 3*time.Second {
			t.Errorf("%s: %v after %s", name, err, time.Since(began))
		}
	}
}

func TestNobodyIsReached(t *testing.T) {
	t.Parallel()
	s := check.Must(mailserver.Listen(mailserver.Options{Dir: t.TempDir()}))(t)
	m := client(t, s)
	check.NoError(t, s.Close())
	var refusal *mail.Refusal
	if err := m.Send(t.Context(), letter()); err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
}

// Whatever a name or an address holds, one mail goes to one recipient, with no header but its own.
func TestInjection(t *testing.T) {
	t.Parallel()
	s := listen(t, mailserver.Options{})
	m := client(t, s)
	for _, subject := range []string{
		"Hello\r\nBcc: eve@example.com", "Hello\nBcc: eve@example.com", "Hello\r\n\r\n<script>",
		"Hello\r\n.\r\nMAIL FROM:<eve@example.com>",
		"=?utf-8?q?=0D=0ABcc:_eve@example.com?=", strings.Repeat("ä", 300), "\u2028Bcc: eve@example.com",
	} {
		l := letter()
		l.Subject = subject
		check.NoError(t, m.Send(t.Context(), l))
	}
	arrivals := s.Arrivals()
	for _, a := range arrivals {
		header, _, _ := strings.Cut(string(a.Raw), "\r\n\r\n")
		added := strings.Contains(strings.ToLower(header), "\nbcc:") || strings.Count(header, "\nSubject:") != 1
		if a.To != "bob@example.com" || added {
			t.Errorf("to %s:\n%s", a.To, header)
		}
		check.Must(eml.Parse(bytes.NewReader(a.Raw)))(t)
	}
	for _, address := range []string{
		"bob@example.com\r\nRCPT TO:<eve@example.com>", "bob@example.com>\r\nDATA", "bob@example.com, eve@example.com",
		`"bob> ORCPT=x"@example.com`, "<bob@example.com>", "Bob <bob@example.com>", "bob@example.com NOTIFY=SUCCESS", "bøb@example.com",
	} {
		l := letter()
		l.To = address
		var refusal *mail.Refusal
		if err := m.Send(t.Context(), l); !errors.As(err, &refusal) {
			t.Errorf("%q: %v", address, err)
		}
		if m.Check(address) == nil {
			t.Errorf("%q is no address, and can be invited", address)
		}
	}
	if n := len(s.Arrivals()); n != len(arrivals) {
		t.Errorf("%d mails have gone to addresses that are none", n-len(arrivals))
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := mailer.Options{Address: "mail.example.com:587", Security: mailer.StartTLS, From: "a@example.com"}
	check.Must(mailer.NewSMTP(good))(t)
	for want, change := range map[string]func(*mailer.Options){
		"host:port":              func(o *mailer.Options) { o.Address = "mail.example.com" },
		"host:port, not \":25\"": func(o *mailer.Options) { o.Address = ":25" },
		"not \"ssl\"":            func(o *mailer.Options) { o.Security = "ssl" },
		"on this machine":        func(o *mailer.Options) { o.Security = mailer.Plain },
		"without a password": func(o *mailer.Options) {
			o.Address, o.Security, o.User, o.Password = "localhost:25", mailer.Plain, "u", password
		},
		"together":            func(o *mailer.Options) { o.Password = password },
		"sender \"\"":         func(o *mailer.Options) { o.From = "" },
		"sender \"a@b\\r\\nX": func(o *mailer.Options) { o.From = "a@b\r\nX: y" },
		"no certificate":      func(o *mailer.Options) { o.CA = []byte("none") },
	} {
		o := good
		change(&o)
		_, err := mailer.NewSMTP(o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), password) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
