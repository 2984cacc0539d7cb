package mailer

import (
	"context"
	"net"
	"time"

	gomail "github.com/wneessen/go-mail"

	message "github.com/pgherd/pgherd/core/mail"
)

// SMTP hands each mail to a mail server, on a connection of its own.
type SMTP struct{ settings }

// NewSMTP checks the options. It connects to nothing.
func NewSMTP(o Options) (*SMTP, error) {
	s, err := o.check()
	return &SMTP{s}, err
}

// Check implements ports.Mailer.
func (s *SMTP) Check(to string) error { return message.CheckRecipient(to) }

// Send implements ports.Mailer. The connection is closed when ctx ends, whatever it waits for.
func (s *SMTP) Send(ctx context.Context, m message.Message) error {
	out, err := s.from.write(m)
	if err != nil {
		return err
	}
	var l line
	defer l.end()
	defer context.AfterFunc(ctx, l.end)()
	client, err := gomail.NewClient(s.host, s.options(&l)...)
	if err != nil {
		return err
	}
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return handshakeFailure(ctx, err)
	}
	if err := l.limit(s.Transaction); err != nil {
		return err
	}
	if err := client.SendWithSMTPClient(session, out); err != nil && !out.IsDelivered() {
		return transactionFailure(ctx, err)
	}
	// The mail is taken. A server that does not say goodbye must not delay its record.
	if l.limit(goodbye) == nil {
		_ = client.CloseWithSMTPClient(session)
	}
	return nil
}

// goodbye is how long the end of a session may take.
const goodbye = time.Second

// forever is for go-mail's own limits, of which line takes no notice.
const forever = 24 * time.Hour

func (s *SMTP) options(l *line) []gomail.Option {
	policy := gomail.NoTLS // by go-mail itself
	if s.Security == StartTLS {
		policy = gomail.TLSMandatory
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx, l) }
	options := []gomail.Option{
		gomail.WithPort(s.port), gomail.WithTimeout(forever), gomail.WithTLSPolicy(policy), gomail.WithTLSConfig(s.tls),
		gomail.WithDialContextFunc(dial), gomail.WithoutNoop(), gomail.WithoutRset(), gomail.WithoutSMTPUTF8(),
	}
	if s.User != "" {
		options = append(options, gomail.WithUsername(s.User), gomail.WithPassword(s.Password),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin))
	}
	return options
}
