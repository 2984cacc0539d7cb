package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/ports"
)

// Sessions is the suite of ports.Sessions.
func Sessions(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a session comes back as it was stored", sessionComesBack},
		{"the list has those of a person that are stored as open, last used first", sessionsAreListed},
		{"the use of a session only grows, until its end", sessionsAreTouched},
		{"all sessions of a person end but one", sessionsEnd},
		{"those that are over for long are forgotten", sessionsAreForgotten},
	})
}

// session of a person that began at a minute, with a token of its own, that is not stored yet.
func (w *world) session(of id.UserID, minute int) person.Session {
	s, at := newID[id.SessionID](), person.Device{Client: "192.0.2.1", Agent: "ünicode / 1.0"}
	return person.Begin(s, of, token.Of(string(s)), person.ByPassword, false, at, minutes(minute))
}

func (w *world) addSession(of id.UserID, minute int, change ...func(*person.Session)) person.Session {
	w.Helper()
	s := changed(w.session(of, minute), change)
	w.update(writing(ports.Tx.Sessions, ports.Sessions.Add, s))
	return s
}

// endedSession has a session end at a minute.
func endedSession(minute int) func(*person.Session) {
	return func(s *person.Session) { s.Status, s.EndedAt = person.Ended, new(minutes(minute)) }
}

func sessionComesBack(w *world) {
	s := w.addSession(w.user.ID, 1, func(s *person.Session) {
		s.Status, s.Issuer, s.Subject = person.AwaitsFactor, firstIssuer, "ada"
	})
	old := token.Of(string(s.ID))
	w.equal("as added", read(w, ports.Tx.Sessions, ports.Sessions.Get, s.ID), s)
	entry := ports.SessionEntry{Session: s, User: w.user, Account: w.account}
	w.equal("by its token", read(w, ports.Tx.Sessions, ports.Sessions.ByToken, old), entry)
	w.update(writing2(ports.Tx.Credentials, ports.Credentials.SetPassword, w.user.ID, "hash"))
	w.equal("by its token, without the password", read(w, ports.Tx.Sessions, ports.Sessions.ByToken, old).User.PasswordHash, "")
	w.update(writing(ports.Tx.Switches, ports.Switches.SetMaintenance, true))
	w.equal("in a maintenance window", read(w, ports.Tx.Sessions, ports.Sessions.ByToken, old).Maintenance, true)

	proved := must(s.Proved(token.Of("fresh"), person.ByPasskey, minutes(2)))(w)
	proved.Tries = 3
	w.update(writing(ports.Tx.Sessions, ports.Sessions.Save, proved))
	w.equal("by its new token", read(w, ports.Tx.Sessions, ports.Sessions.ByToken, token.Of("fresh")).Session, proved)
	w.missing("by its old token", reading(ports.Tx.Sessions, ports.Sessions.ByToken, old))
	closed := must(proved.Closed(minutes(3)))(w)
	w.update(writing(ports.Tx.Sessions, ports.Sessions.Save, closed))
	w.equal("as saved", read(w, ports.Tx.Sessions, ports.Sessions.Get, s.ID), closed)

	w.missing("an unknown one", reading(ports.Tx.Sessions, ports.Sessions.Get, newID[id.SessionID]()))
	w.unknown("saving an unknown one", writing(ports.Tx.Sessions, ports.Sessions.Save, w.session(w.user.ID, 0)))
	w.unknown("locking an unknown one", reading(ports.Tx.Sessions, ports.Sessions.Lock, newID[id.SessionID]()))
	w.unknown("one of nobody", writing(ports.Tx.Sessions, ports.Sessions.Add, w.session(newID[id.UserID](), 0)))
	same := w.session(w.user.ID, 0)
	same.TokenHash = closed.TokenHash
	w.fails("another one with the token of this", writing(ports.Tx.Sessions, ports.Sessions.Add, same))
	lone := account.User{ID: newID[id.UserID](), Email: "eve@example.com", Name: "Eve", CreatedAt: epoch}
	w.update(writing(ports.Tx.Accounts, ports.Accounts.AddUser, lone))
	without := w.addSession(lone.ID, 0)
	w.missing("one of somebody without an account", reading(ports.Tx.Sessions, ports.Sessions.ByToken, token.Of(string(without.ID))))
}

func sessionsAreListed(w *world) {
	bob, _ := w.addAccount("bob@example.com")
	first := w.addSession(w.user.ID, 5)
	last := w.addSession(w.user.ID, 1, func(s *person.Session) { s.UsedAt = minutes(9) })
	waiting := w.addSession(w.user.ID, 7, func(s *person.Session) { s.Status = person.AwaitsFactor })
	w.addSession(w.user.ID, 8, endedSession(9))
	theirs := w.addSession(bob.ID, 2)
	w.equal("the list", read(w, ports.Tx.Sessions, ports.Sessions.Of, w.user.ID), []person.Session{last, waiting, first})
	w.equal("the other list", read(w, ports.Tx.Sessions, ports.Sessions.Of, bob.ID), []person.Session{theirs})
}

func sessionsAreTouched(w *world) {
	s := w.addSession(w.user.ID, 5)
	for _, step := range []struct{ at, want int }{{4, 5}, {7, 7}, {6, 7}} {
		w.update(writing2(ports.Tx.Sessions, ports.Sessions.Touch, s.ID, minutes(step.at)))
		w.equal(fmt.Sprintf("after %+v", step), read(w, ports.Tx.Sessions, ports.Sessions.Get, s.ID).UsedAt, minutes(step.want))
	}
	ended := w.addSession(w.user.ID, 5, endedSession(6))
	w.update(writing2(ports.Tx.Sessions, ports.Sessions.Touch, ended.ID, minutes(8)))
	w.equal("one that has ended", read(w, ports.Tx.Sessions, ports.Sessions.Get, ended.ID), ended)
}

func sessionsEnd(w *world) {
	bob, _ := w.addAccount("bob@example.com")
	kept, other := w.addSession(w.user.ID, 1), w.addSession(w.user.ID, 2)
	before, theirs := w.addSession(w.user.ID, 1, endedSession(2)), w.addSession(bob.ID, 1)
	endAll := func(but id.SessionID, at time.Time) transaction {
		return func(ctx context.Context, tx ports.Tx) error { return tx.Sessions().EndAll(ctx, w.user.ID, but, at) }
	}
	w.update(endAll(kept.ID, minutes(3)))
	w.equal("the other one", read(w, ports.Tx.Sessions, ports.Sessions.Get, other.ID), changed(other, []func(*person.Session){
		endedSession(3),
	}))
	for _, s := range []person.Session{kept, before, theirs} {
		w.equal("one that is left alone", read(w, ports.Tx.Sessions, ports.Sessions.Get, s.ID), s)
	}
	w.update(endAll("", minutes(4)))
	w.equal("all", len(read(w, ports.Tx.Sessions, ports.Sessions.Of, w.user.ID)), 0)
}

func sessionsAreForgotten(w *world) {
	life := int(person.Life / time.Minute)
	all := []person.Session{
		w.addSession(w.user.ID, 0), w.addSession(w.user.ID, life, endedSession(life+2)),
		w.addSession(w.user.ID, life, endedSession(life+9)), w.addSession(w.user.ID, life),
	}
	for _, step := range []struct{ before, limit, left int }{
		{life, 10, 4}, {life + 3, 1, 3}, {life + 3, 1, 2}, {life + 3, 10, 2}, {life + 10, 10, 1},
	} {
		w.update(writing2(ports.Tx.Sessions, ports.Sessions.Forget, minutes(step.before), step.limit))
		left := 0
		for _, s := range all {
			if w.Store.View(w.Context(), reading(ports.Tx.Sessions, ports.Sessions.Get, s.ID)) == nil {
				left++
			}
		}
		w.equal(fmt.Sprintf("left after forgetting %+v", step), left, step.left)
	}
	w.equal("the last one", read(w, ports.Tx.Sessions, ports.Sessions.Get, all[3].ID), all[3])
}

// Credentials is the suite of ports.Credentials.
func Credentials(t *testing.T, m Metadata) {
	checkAll(t, m, []check{
		{"a password is replaced", passwordIsReplaced},
		{"the last log-in is stored", logInIsStored},
		{"a link to reset a password is one at a time", resetsReplaceEachOther},
		{"a factor comes back as it was stored, and is replaced whole", factorComesBack},
		{"a recovery code works once, and new ones end the old", recoveryCodesWorkOnce},
	})
}

func passwordIsReplaced(w *world) {
	for _, hash := range []string{"one", "another", ""} {
		w.update(writing2(ports.Tx.Credentials, ports.Credentials.SetPassword, w.user.ID, hash))
		w.equal("as stored", read(w, ports.Tx.Accounts, ports.Accounts.User, w.user.ID).PasswordHash, hash)
	}
	w.unknown("the password of nobody", writing2(ports.Tx.Credentials, ports.Credentials.SetPassword, newID[id.UserID](), "x"))
	w.unknown("locking nobody", reading(ports.Tx.Credentials, ports.Credentials.Lock, newID[id.UserID]()))
}

func logInIsStored(w *world) {
	for _, at := range []time.Time{minutes(1), minutes(2)} {
		w.update(writing2(ports.Tx.Credentials, ports.Credentials.SetLoggedIn, w.user.ID, at))
		w.equal("as stored", readLocked(w, ports.Tx.Credentials, ports.Credentials.Lock, w.user.ID).LoggedInAt, &at)
	}
	w.unknown("that of nobody", writing2(ports.Tx.Credentials, ports.Credentials.SetLoggedIn, newID[id.UserID](), epoch))
}

func resetsReplaceEachOther(w *world) {
	reset := func(text string, minute int) person.Reset {
		r := person.NewReset(w.user.ID, true, token.Of(text), minutes(minute))
		r.ByOperator = minute == 1
		return r
	}
	for n, text := range []string{"one", "another"} {
		w.update(writing(ports.Tx.Credentials, ports.Credentials.SetReset, reset(text, n)))
		w.equal("as stored", read(w, ports.Tx.Credentials, ports.Credentials.ResetByToken, token.Of(text)), reset(text, n))
	}
	w.missing("the one of before", reading(ports.Tx.Credentials, ports.Credentials.ResetByToken, token.Of("one")))
	bob, _ := w.addAccount("bob@example.com")
	theirs := reset("another", 1)
	theirs.UserID = bob.ID
	w.update(writing(ports.Tx.Credentials, ports.Credentials.RemoveReset, w.user.ID))
	w.missing("after its removal", reading(ports.Tx.Credentials, ports.Credentials.ResetByToken, token.Of("another")))
	w.update(writing(ports.Tx.Credentials, ports.Credentials.SetReset, theirs))
	nobodys := reset("a third", 2)
	nobodys.UserID = newID[id.UserID]()
	w.unknown("one of nobody", writing(ports.Tx.Credentials, ports.Credentials.SetReset, nobodys))
}

func factorComesBack(w *world) {
	w.missing("before there is one", reading(ports.Tx.Credentials, ports.Credentials.Factor, w.user.ID))
	f := person.Factor{UserID: w.user.ID, SealedSecret: []byte{0, 255}, CreatedAt: minutes(1)}
	w.unknown("saving one that is not stored", writing(ports.Tx.Credentials, ports.Credentials.SaveFactor, f))
	w.update(writing(ports.Tx.Credentials, ports.Credentials.SetFactor, f))
	w.equal("as stored", read(w, ports.Tx.Credentials, ports.Credentials.Factor, w.user.ID), f)
	used := f.Confirmed(minutes(2))
	used.LastStep, used.SealedSecret = 60_000_000, []byte("of another moment")
	w.update(writing(ports.Tx.Credentials, ports.Credentials.SaveFactor, used))
	used.SealedSecret = f.SealedSecret
	w.equal("as saved, with its secret", read(w, ports.Tx.Credentials, ports.Credentials.Factor, w.user.ID), used)
	fresh := person.Factor{UserID: w.user.ID, SealedSecret: []byte("new"), CreatedAt: minutes(3)}
	w.update(writing(ports.Tx.Credentials, ports.Credentials.SetFactor, fresh))
	w.equal("in place of the other", read(w, ports.Tx.Credentials, ports.Credentials.Factor, w.user.ID), fresh)
	w.update(writing2(ports.Tx.Credentials, ports.Credentials.SetRecovery, w.user.ID, []token.Hash{token.Of("a")}))
	w.update(writing(ports.Tx.Credentials, ports.Credentials.RemoveFactor, w.user.ID))
	w.missing("after its removal", reading(ports.Tx.Credentials, ports.Credentials.Factor, w.user.ID))
	w.equal("recovery codes", read(w, ports.Tx.Credentials, ports.Credentials.Recovery, w.user.ID), 0)
	f.UserID = newID[id.UserID]()
	w.unknown("one of nobody", writing(ports.Tx.Credentials, ports.Credentials.SetFactor, f))
}

func recoveryCodesWorkOnce(w *world) {
	bob, _ := w.addAccount("bob@example.com")
	a, b := token.Of("a"), token.Of("b")
	set := func(of id.UserID, codes ...token.Hash) transaction {
		return writing2(ports.Tx.Credentials, ports.Credentials.SetRecovery, of, codes)
	}
	use := func(of id.UserID, code token.Hash) transaction {
		return writing2(ports.Tx.Credentials, ports.Credentials.UseRecovery, of, code)
	}
	left := func(of id.UserID) int { return read(w, ports.Tx.Credentials, ports.Credentials.Recovery, of) }
	w.update(set(w.user.ID, a, b))
	w.update(set(bob.ID, a))
	w.update(use(w.user.ID, a))
	w.unknown("the same again", use(w.user.ID, a))
	w.equal("left", left(w.user.ID), 1)
	w.equal("left of another person", left(bob.ID), 1)
	w.update(set(w.user.ID, a))
	w.unknown("one of before", use(w.user.ID, b))
	w.equal("left of the new ones", left(w.user.ID), 1)
	w.unknown("those of nobody", set(newID[id.UserID](), a))
}
