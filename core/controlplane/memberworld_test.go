package controlplane_test

import (
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/members"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/member"
	"github.com/pgherd/pgherd/fakes/fakepasswords"
	"github.com/pgherd/pgherd/ports"
)

// shared is a world with a database, and how its owner reaches it.
type shared struct {
	*world
	db      access.Reached
	hashing *slowHasher
}

func newShared(t *testing.T) *shared {
	t.Helper()
	w := newWorld(t)
	h := &slowHasher{}
	w.ports.Passwords = h
	impatient := quick()
	impatient.HashWait = 300 * time.Millisecond
	w.ControlPlane = w.process(impatient)
	return &shared{w, w.reached(w.made("shop").Record.ID), h}
}

// slowHasher counts how often passwords are hashed, and holds each until it is let go on, where it is told to.
type slowHasher struct {
	fakepasswords.Hasher
	times atomic.Int64
	gate  chan struct{} // nil: nobody is held
}

func (h *slowHasher) Hash(password string, salt [16]byte) (string, error) {
	h.times.Add(1)
	if h.gate != nil {
		<-h.gate
	}
	return h.Hasher.Hash(password, salt)
}

// adds has the owner add an address, which must go well.
func (s *shared) adds(email string, role account.Standing) members.Added {
	s.t.Helper()
	return must(s.Members.Add(s.ctx, s.db, email, role))(s.t)
}

var base62 = regexp.MustCompile(`\b[0-9A-Za-z]{40}\b`)

// mailed are the tokens that an address was sent, the oldest first. Those that were made at the same time come in any order.
func (w *world) mailed(email string) (tokens []string) {
	w.t.Helper()
	w.mails(w.ControlPlane)
	for _, m := range w.mailbox.Mails(email) {
		tokens = append(tokens, base62.FindString(m.Text))
	}
	return tokens
}

// invited is the token of a new invitation.
func (s *shared) invited(email string, role account.Standing) string {
	s.t.Helper()
	s.adds(email, role)
	tokens := s.mailed(email)
	return tokens[len(tokens)-1]
}

const password = "correct horse battery"

// newcomer accepts with a name and a password.
func newcomer(token string) members.Acceptance {
	return members.Acceptance{Token: token, Name: new("Bob"), Password: new(password)}
}

// joins has somebody accept, which must go well.
func (s *shared) joins(token string) member.Member {
	s.t.Helper()
	return must(s.Members.Accept(s.ctx, newcomer(token)))(s.t)
}

// nobody fails the test unless a token is worth nothing; every such refusal is the same.
func (s *shared) nobody(token string) {
	s.t.Helper()
	_, err := s.Members.Accept(s.ctx, newcomer(token))
	if err == nil || err.Error() != member.ErrNotFound().Error() {
		s.t.Errorf("%v, want %v", err, member.ErrNotFound())
	}
}

// keyOf is a selected-database key of an account, bound to the database.
func (s *shared) keyOf(a id.AccountID) string {
	s.t.Helper()
	_, key, err := s.Operator.CreateKey(s.ctx, keys.NewKey{
		AccountID: a, Label: "k", Scope: account.SelectedDatabases, Databases: []id.DatabaseID{s.db.Record().ID},
	})
	ok(s.t, err)
	return key
}

func (s *shared) reaches(key string, action account.Action) error {
	s.t.Helper()
	_, err := s.Access.Reach(s.ctx, s.admit(key), s.db.Record().ID, action)
	return err
}

// people are the addresses of the members and, with a question mark, of the invited.
func (s *shared) people() (list []string) {
	s.t.Helper()
	all := must(s.Members.List(s.ctx, s.db))(s.t)
	for _, m := range all.Members {
		list = append(list, m.Email+" "+string(m.Role))
	}
	for _, i := range all.Invitations {
		list = append(list, i.Email+" "+string(i.Role)+"?")
	}
	return list
}

func (s *shared) peopleAre(want ...string) {
	s.t.Helper()
	if got := s.people(); !slices.Equal(got, want) {
		s.t.Errorf("the people are %q, want %q", got, want)
	}
}

// details of all activity entries of the database.
func (s *shared) details() (list []map[string]string) {
	s.t.Helper()
	for _, e := range must(s.Operator.Audit(s.ctx, s.db.Record().ID, ports.Page{}))(s.t) {
		list = append(list, e.What.Details)
	}
	return list
}
