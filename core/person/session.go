// Package person holds the rules of people who log in: sessions, second factors, recovery codes, and sign-ons by an issuer.
package person

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/token"
)

// How long a session lasts.
const (
	// Idle is how long an open session may be without a request.
	Idle = 12 * time.Hour
	// Life is how long an open session lasts at most, from its log-in.
	Life = 14 * 24 * time.Hour
	// FactorTime is how long a log-in may wait for its second factor.
	FactorTime = 10 * time.Minute
	// Recent is how long a log-in, or a proof of who somebody is, counts as recent.
	Recent = 10 * time.Minute
	// Touch is how exactly it is known when a session was last used.
	Touch = time.Minute
)

// MaxSessions is how many sessions of a person are open or wait for a factor. One more ends what Displaced says.
const MaxSessions = 50

// MaxFactorTries is how many wrong codes a log-in may have before it ends.
const MaxFactorTries = 5

// maxAgent is how much is kept of what a browser says of itself, in characters.
const maxAgent = 200

// Session is a person who is logged in on one device, or is about to be. Its token is in a cookie, and is another one after each
// proof.
type Session struct {
	ID        id.SessionID `db:"id"`
	UserID    id.UserID    `db:"user_id"`
	TokenHash []byte       `db:"token_hash"`
	Status    Status       `db:"status"`
	Tries     int          `db:"tries"` // wrong codes since the last right one
	CreatedAt time.Time    `db:"created_at"`
	UsedAt    time.Time    `db:"used_at"`   // to Touch
	ProvedAt  time.Time    `db:"proved_at"` // when the person last proved who they are
	ProvedBy  Means        `db:"proved_by"` // and by what
	EndedAt   *time.Time   `db:"ended_at"`
	Client    string       `db:"client"` // the address at log-in
	Agent     string       `db:"agent"`  // what the browser said of itself
	// Who the person is to an issuer, which is stored with the factor that the log-in awaits: who does not have it changes nothing.
	Issuer  string `db:"issuer"` // empty: nothing is to be stored
	Subject string `db:"subject"`
}

// Links is the session with an identity that the person gets with the factor.
func (s Session) Links(i Identity) Session {
	s.Issuer, s.Subject = i.Issuer, i.Subject
	return s
}

// Means is by what a person proves who they are.
type Means string

// The means.
const (
	ByPassword Means = "password" // or a link of the operator in its place
	BySignOn   Means = "sign_on"
	ByCode     Means = "code" // of the authenticator app or a recovery code, beside the password or a sign-on
	ByPasskey  Means = "passkey"
)

// AllMeans lists them in the order of their strength.
var AllMeans = []Means{ByPassword, BySignOn, ByCode, ByPasskey}

// Device is where somebody logs in.
type Device struct{ Client, Agent string }

// Begin is a new session after a proof. After a password or a sign-on it waits for the second factor, where that is needed.
func Begin(s id.SessionID, of id.UserID, hash token.Hash, by Means, needsFactor bool, at Device, now time.Time) Session {
	status := Open
	if needsFactor && (by == ByPassword || by == BySignOn) {
		status = AwaitsFactor
	}
	return Session{
		ID: s, UserID: of, TokenHash: hash[:], Status: status, CreatedAt: now, UsedAt: now, ProvedAt: now, ProvedBy: by,
		Client: at.Client, Agent: shortened(at.Agent),
	}
}

// shortened is a text that can be stored: valid, without control characters, and not long.
func shortened(agent string) string {
	kept := make([]rune, 0, maxAgent)
	for _, r := range agent {
		if len(kept) == maxAgent {
			break
		}
		if r != utf8.RuneError && r >= ' ' && r != 0x7f {
			kept = append(kept, r)
		}
	}
	return string(kept)
}

// At is the session as it is at a time: one whose time is over has ended, whether or not that is stored yet.
func (s Session) At(now time.Time) Session {
	if end := s.end(); s.Status != Ended && !now.Before(end) {
		s.Status, s.EndedAt = Transitions[s.Status][Expire].Next, &end
	}
	return s
}

// end is when a session ends by itself.
func (s Session) end() time.Time {
	if s.Status == AwaitsFactor {
		return s.CreatedAt.Add(FactorTime)
	}
	end, idle := s.CreatedAt.Add(Life), s.UsedAt.Add(Idle)
	if idle.Before(end) {
		return idle
	}
	return end
}

// Proved is the session after the person has proved who they are, by a second factor or once more: it is open, and has another
// token. UNAUTHORIZED where it has ended.
func (s Session) Proved(hash token.Hash, by Means, now time.Time) (Session, error) {
	s, err := s.apply(Prove, now)
	if err == nil {
		s.TokenHash, s.ProvedAt, s.ProvedBy, s.UsedAt, s.Tries = hash[:], now, by, now, 0
	}
	return s, err
}

// Missed is the session after a wrong proof. The last one that is allowed ends it. UNAUTHORIZED where it has ended.
func (s Session) Missed(now time.Time) (Session, error) {
	if s.Tries+1 >= MaxFactorTries {
		return s.Closed(now)
	}
	s, err := s.apply(Miss, now)
	if err == nil {
		s.Tries++
	}
	return s, err
}

// Closed is the session after its end. UNAUTHORIZED where it has ended already.
func (s Session) Closed(now time.Time) (Session, error) {
	s, err := s.apply(End, now)
	if err == nil {
		s.EndedAt = &now
	}
	return s, err
}

func (s Session) apply(e Event, now time.Time) (Session, error) {
	s = s.At(now)
	cell, err := Transitions.Decide(s.Status, e)
	if err == nil {
		s.Status = cell.Next
	}
	return s, err
}

// IsOpen reports whether the session reaches anything at a time.
func (s Session) IsOpen(now time.Time) bool { return s.At(now).Status == Open }

// Used is the session after a request, and whether that is worth storing.
func (s Session) Used(now time.Time) (_ Session, changed bool) {
	if now.Sub(s.UsedAt) < Touch {
		return s, false
	}
	s.UsedAt = now
	return s, true
}

// Operates returns nil if a person may use the operator's console in the session: one who is named as an operator and has a
// passkey, whose last proof was by one. Who proves by a password afterwards is no operator until the next proof.
// ROUTE_NOT_FOUND: the person is not named, and is not told that there is a console. FORBIDDEN: they have no passkey.
// LOGIN_REQUIRED: the last proof was by something else.
func (s Session) Operates(named, hasPasskey bool) error {
	switch {
	case !named:
		return fault.New(fault.RouteNotFound, "there is no such page")
	case !hasPasskey:
		return fault.New(fault.Forbidden, "the operator's console needs a passkey: add one under Security")
	case s.ProvedBy != ByPasskey:
		return fault.New(fault.LoginRequired, "the operator's console needs a proof by a passkey")
	}
	return nil
}

// ChangesPasskeys returns LOGIN_REQUIRED where a session adds or removes a passkey of an operator who has one, and was not proved
// by one: otherwise a password would be enough to make a passkey that operates.
func (s Session) ChangesPasskeys(named, hasPasskey bool) error {
	if named && hasPasskey && s.ProvedBy != ByPasskey {
		return fault.New(fault.LoginRequired, "passkeys of an operator are changed after a proof by one of them")
	}
	return nil
}

// Displaced are those of a person's sessions, the one that was used last first, that end so that one more may begin: log-ins that
// wait for their factor, and then those that were used longest ago. Who knows the password alone ends one open session at most.
func Displaced(all []Session) []Session {
	if len(all) < MaxSessions {
		return nil
	}
	waits := func(s Session) int {
		if s.Status == AwaitsFactor {
			return 1
		}
		return 0
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Session) int { return waits(a) - waits(b) })
	return all[MaxSessions-1:]
}

// RequireRecent returns LOGIN_REQUIRED where the last proof is too long ago for what cannot be undone, or shows a secret.
func (s Session) RequireRecent(now time.Time) error {
	if now.Sub(s.ProvedAt) > Recent {
		return fault.New(fault.LoginRequired, "this needs a log-in of the last %d minutes: prove once more who you are",
			Recent/time.Minute)
	}
	return nil
}
