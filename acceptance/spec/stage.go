package spec

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/fault"
)

// Stage is where a scenario plays: a world, and the test that fails when the story goes another way.
type Stage struct {
	testing.TB
	World
	// legacy says that the databases of the story have a single login, that its calls are those about legacy roles, and that
	// LEGACY_ROLE_CONFLICT is meant where it says MANAGED_ROLE_CONFLICT.
	legacy bool
}

// patience is how long a story waits for what must happen in the end. A recovery replays all that the world, in which hundreds of
// databases are made, has written since its base backup.
const patience = 5 * time.Minute

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

// finally does something when the story ends, however it ends.
func (s *Stage) finally(do func() error) {
	s.Cleanup(func() {
		if err := do(); err != nil {
			s.Error(err)
		}
	})
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
func (s *Stage) Refused(err error, code fault.Code, fields ...string) *apiclient.Error {
	s.Helper()
	if s.legacy && code == fault.ManagedRoleConflict {
		code = fault.LegacyRoleConflict
	}
	var r *apiclient.Error
	switch {
	case err == nil:
		s.Fatalf("went through; want %s", code)
	case !errors.As(err, &r) || r.Code != code:
		s.Fatalf("got %v; want %s", err, code)
	}
	var wrong []string
	for _, d := range r.Details {
		wrong = append(wrong, d.Field)
	}
	if len(fields) > 0 && !slices.Equal(wrong, fields) {
		s.Fatalf("got %v; want %s because of %v", err, code, fields)
	}
	return r
}

// refusal is the error of a call.
func refusal[T any](_ T, err error) error { return err }

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
	session := must(s.Connect(l))(s)
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
