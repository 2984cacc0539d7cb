// Package mailserver runs real SMTP servers on loopback, of the kinds that the real world has.
package mailserver

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/pgherd/pgherd/hosts/cluster"
)

// Options say what a server is like.
type Options struct {
	// Dir keeps the server's authority.
	Dir string
	// Certified are the names in its certificate; by default that of the loopback address.
	Certified []string
	// TLS encrypts connections from the first byte; otherwise the server offers STARTTLS, unless Plain.
	TLS, Plain bool
	// User and Password are required where they are set, by the mechanisms PLAIN or LOGIN; LoginOnly leaves LOGIN.
	User, Password string
	LoginOnly      bool
	// The server calls these at each phase, with its connection; an error is its answer.
	OnConnect, OnMail, OnRcpt, OnData func(c *smtp.Conn) error
}

// Arrival is a mail as it has arrived.
type Arrival struct {
	From, To string
	Raw      []byte
	Secured  bool // by TLS
	User     string
}

// Server is an SMTP server on loopback.
type Server struct {
	// Address is host:port, CAFile what a client has to trust.
	Address, CAFile string

	options  Options
	server   *smtp.Server
	listener net.Listener

	mu       sync.Mutex
	arrivals []Arrival
	open     int
}

const loopback = "127.0.0.1"

// Listen starts a server with a certificate of an authority in the folder.
func Listen(o Options) (*Server, error) {
	if o.Certified == nil {
		o.Certified = []string{loopback}
	}
	ca, err := cluster.OpenCA(o.Dir)
	if err != nil {
		return nil, err
	}
	pair, err := ca.Pair("mail", o.Certified...)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return nil, err
	}
	s := &Server{Address: listener.Addr().String(), CAFile: ca.CertFile(), options: o}
	s.server = smtp.NewServer(smtp.BackendFunc(s.session))
	s.server.ErrorLog, s.server.Domain = log.New(io.Discard, "", 0), "mail.test"
	secured := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	switch {
	case o.TLS:
		listener = tls.NewListener(listener, secured)
	case !o.Plain:
		s.server.TLSConfig = secured
	}
	s.listener = listener
	go func() { _ = s.server.Serve(listener) }() // ends with Close
	return s, nil
}

// Close ends the server with all its connections.
func (s *Server) Close() error {
	err := s.server.Close()
	_ = s.listener.Close() // which the server may not have known yet
	return err
}

// Arrivals returns what has arrived, oldest first.
func (s *Server) Arrivals() []Arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.arrivals)
}

// Open is how many connections are open.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func (s *Server) session(c *smtp.Conn) (smtp.Session, error) {
	if err := call(s.options.OnConnect, c); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	return &session{server: s, conn: c}, nil
}

// Hang keeps a client waiting until it leaves, or the test has ended.
func Hang(until <-chan struct{}) func(*smtp.Conn) error {
	return func(*smtp.Conn) error {
		select {
		case <-until:
		case <-time.After(time.Minute):
		}
		return Refuse(421, "too late")(nil)
	}
}

// Drop closes the connection without an answer.
func Drop(c *smtp.Conn) error {
	_ = c.Conn().Close()
	return net.ErrClosed
}

// Refuse answers with a code and a text; 450 goes with 4.0.0 and so on.
func Refuse(code int, text string, enhanced ...int) func(*smtp.Conn) error {
	status := smtp.EnhancedCode{code / 100, 0, 0}
	if len(enhanced) == 2 {
		status[1], status[2] = enhanced[0], enhanced[1]
	}
	return func(*smtp.Conn) error { return &smtp.SMTPError{Code: code, EnhancedCode: status, Message: text} }
}

func call(fn func(*smtp.Conn) error, c *smtp.Conn) error {
	if fn == nil {
		return nil
	}
	return fn(c)
}

// session is one client's.
type session struct {
	server *Server
	conn   *smtp.Conn
	mail   Arrival
	user   string
}

// Mail implements smtp.Session.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.server.options.User != "" && s.user == "" {
		return &smtp.SMTPError{Code: 530, EnhancedCode: smtp.EnhancedCode{5, 7, 0}, Message: "Authentication required"}
	}
	_, secured := s.conn.TLSConnectionState()
	s.mail = Arrival{From: from, Secured: secured, User: s.user}
	return call(s.server.options.OnMail, s.conn)
}

// Rcpt implements smtp.Session.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.To += to
	return call(s.server.options.OnRcpt, s.conn)
}

// Data implements smtp.Session.
func (s *session) Data(r io.Reader) error {
	if s.server.options.OnData != nil {
		first := make([]byte, 100)
		if _, err := io.ReadFull(r, first); err != nil {
			return err
		}
		if err := s.server.options.OnData(s.conn); err != nil {
			_, _ = io.Copy(io.Discard, r)
			return err
		}
		s.mail.Raw = first
	}
	rest, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mail.Raw = append(s.mail.Raw, rest...)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.arrivals = append(s.server.arrivals, s.mail)
	return nil
}

// Reset implements smtp.Session.
func (s *session) Reset() { s.mail = Arrival{} }

// Logout implements smtp.Session.
func (s *session) Logout() error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.open--
	return nil
}

// AuthMechanisms implements smtp.AuthSession.
func (s *session) AuthMechanisms() []string {
	switch {
	case s.server.options.User == "":
		return nil
	case s.server.options.LoginOnly:
		return []string{"LOGIN"}
	}
	return []string{sasl.Plain, "LOGIN"}
}

// Auth implements smtp.AuthSession. The answer to a wrong password repeats it, as no server should.
func (s *session) Auth(mechanism string) (sasl.Server, error) {
	check := func(_, user, password string) error {
		if user != s.server.options.User || password != s.server.options.Password {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "wrong: " + user + " " + password}
		}
		s.user = user
		return nil
	}
	if mechanism == sasl.Plain {
		return sasl.NewPlainServer(check), nil
	}
	return &login{check: check}, nil
}

// login is the server's side of LOGIN.
type login struct {
	check sasl.PlainAuthenticator
	said  []string
}

// Next implements sasl.Server.
func (l *login) Next(response []byte) (challenge []byte, done bool, err error) {
	if response != nil {
		l.said = append(l.said, string(response))
	}
	switch len(l.said) {
	case 0:
		return []byte("Username:"), false, nil
	case 1:
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check("", l.said[0], l.said[1])
}
