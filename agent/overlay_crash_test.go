package agent_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/database"
)

// The agent dies while it gives the groups their rights in a copy that was made of a backup from before the opt-in: the next one
// goes on, or the restore is closed, and the database serves as before.
func TestCrashWhileOptingInACopy(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	maker := s.child(t, "")
	w := s.made(t, database.SingleLogin)
	check.Must(s.owner(t, w).Exec(`CREATE TABLE a (); CREATE SCHEMA closed CREATE TABLE b ();
		REVOKE ALL ON SCHEMA closed FROM CURRENT_USER`))(t)
	s.saved(t, w)
	s.doneInTheEnd(t, w.optIn())
	maker.kill()
	for i, point := range []string{crash.OverlayListed, crash.OverlayRead, crash.SwitchOverlaid} {
		for n, closed := range []bool{false, true} {
			if !turn(i, n, 2) {
				continue
			}
			t.Run(fmt.Sprint(point, " closed ", closed), func(t *testing.T) {
				operation := newUUID()
				first := s.child(t, "")
				s.ready(t, w, operation)
				first.kill()
				s.crashAt(t, point, w.switching(operation))
				next := s.child(t, "")
				defer next.kill()
				if closed {
					s.done(t, closing(operation))
				} else {
					s.doneInTheEnd(t, w.switching(operation))
					s.discarded(t, w, operation)
				}
				s.nothingOf(t, operation)
				s.nothingLacks(t, w)
				s.getsIn(t, "the database", w.present(database.OwnerLogin))
				s.noOrphans(t)
			})
		}
	}
}

// What gets another's name, or is opened by its owner, between the look at it and the grants is found again afterwards.
func TestOptInReadsBackWhatItHasGranted(t *testing.T) {
	t.Parallel()
	s := crashStack(t)
	for what, meanwhile := range map[string]string{
		"renamed": "ALTER TABLE a RENAME TO aside; CREATE TABLE a ()", "opened": "GRANT USAGE ON SCHEMA mine TO CURRENT_USER",
	} {
		t.Run(what, func(t *testing.T) {
			working := s.child(t, crash.Stop+crash.OverlayListed)
			defer working.kill()
			w := s.made(t, database.SingleLogin)
			owner := s.owner(t, w)
			check.Must(owner.Exec(`CREATE TABLE a (); CREATE SCHEMA mine CREATE TABLE b ();
				REVOKE USAGE ON SCHEMA mine FROM CURRENT_USER`))(t)
			opted := w.optIn()
			answered := make(chan string, 1)
			go func() {
				_, reason, err := s.send(opted)
				answered <- fmt.Sprint(reason, err)
			}()
			working.stopped(t)
			check.Must(owner.Exec(meanwhile))(t)
			working.thaw(t)
			if got := <-answered; got != "<nil>" {
				t.Error(got)
			}
			s.nothingLacks(t, w)
			if what == "opened" {
				check.Must(owner.Exec("TABLE mine.b"))(t)
			}
		})
	}
}
