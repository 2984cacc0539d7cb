package spec

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Stage is where a scenario plays: a world, and the test that fails when the story goes another way.
type Stage struct {
	testing.TB
	World
}

// patience is how long a story waits for what must happen in the end.
const patience = 60 * time.Second

// glance is how long it waits between two looks.
const glance = 100 * time.Millisecond

// That fails the story where something is not as it says.
func (s *Stage) That(ok bool, what string, args ...any) {
	s.Helper()
	if !ok {
		s.Fatalf(what, args...)
	}
}

// OK fails the story where a step went wrong.
func (s *Stage) OK(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Eventually waits until something is so.
func (s *Stage) Eventually(what string, so func() bool) {
	s.Helper()
	for until := time.Now().Add(patience); !so(); s.Pass(glance) {
		if time.Now().After(until) {
			s.Fatalf("still not so: %s", what)
		}
	}
}

// Refused fails the story unless the service refused with that code and, where fields are given, because of exactly these.
func (s *Stage) Refused(err error, code string, fields ...string) *Refusal {
	s.Helper()
	var r *Refusal
	switch {
	case err == nil:
		s.Fatalf("went through; want %s", code)
	case !asRefusal(err, &r) || r.Code != code:
		s.Fatalf("got %v; want %s", err, code)
	case len(fields) > 0 && !slices.Equal(r.Fields, fields):
		s.Fatalf("got %v; want %s because of %v", err, code, fields)
	}
	return r
}

func asRefusal(err error, r **Refusal) bool { return errors.As(err, r) }

// Name makes a database name that nobody else uses.
func (s *Stage) Name(word string) string { return word + "-" + strings.ToLower(rand.Text()[:10]) }

// atOnce does something n times at the same time.
func (s *Stage) atOnce(n int, do func(i int) error) []error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errs
}

// Connects opens a connection, which ends with the story.
func (s *Stage) Connects(l Login) Session {
	s.Helper()
	session, err := s.Connect(l)
	s.OK(err)
	s.Cleanup(session.Close)
	return session
}

// ShutOut fails the story where a log-in gets in.
func (s *Stage) ShutOut(l Login) {
	s.Helper()
	if session, err := s.Connect(l); err == nil {
		session.Close()
		s.Fatalf("%s got in to %s from %s", l.Username, l.Database, l.From)
	}
}

// Text makes a pointer for a field that can be null.
func Text(v string) *string { return &v }
