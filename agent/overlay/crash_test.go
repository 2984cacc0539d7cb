package overlay_test

import (
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/agenttest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/core/database"
)

// The agent dies while it gives the groups their rights in a copy that was made of a backup from before the opt-in: the next one
// goes on, or the restore is closed, and the database serves as before.
func TestCrashWhileOptingInACopy(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	maker := s.Child(t, "")
	w := s.Made(t, database.SingleLogin)
	check.Must(s.Owner(t, w).Exec(`CREATE TABLE a (); CREATE SCHEMA closed CREATE TABLE b ();
		REVOKE ALL ON SCHEMA closed FROM CURRENT_USER`))(t)
	s.Saved(t, w)
	s.DoneInTheEnd(t, w.OptIn())
	maker.Kill()
	for i, point := range []string{crash.OverlayListed, crash.OverlayRead, crash.SwitchOverlaid} {
		for n, closed := range []bool{false, true} {
			if !agenttest.Turn(i, n, 2) {
				continue
			}
			t.Run(fmt.Sprint(point, " closed ", closed), func(t *testing.T) {
				operation := agenttest.NewUUID()
				first := s.Child(t, "")
				s.Ready(t, w, operation)
				first.Kill()
				s.CrashAt(t, point, w.Switching(operation))
				next := s.Child(t, "")
				defer next.Kill()
				if closed {
					s.Done(t, agenttest.Closing(operation))
				} else {
					s.DoneInTheEnd(t, w.Switching(operation))
					s.Discarded(t, w, operation)
				}
				s.NothingOf(t, operation)
				nothingLacks(t, s, w)
				s.GetsIn(t, "the database", w.Present(database.OwnerLogin))
				s.NoOrphans(t)
			})
		}
	}
}

// What gets another's name, or is opened by its owner, between the look at it and the grants is found again afterwards.
func TestOptInReadsBackWhatItHasGranted(t *testing.T) {
	t.Parallel()
	s := agenttest.CrashStack(t)
	for what, meanwhile := range map[string]string{
		"renamed": "ALTER TABLE a RENAME TO aside; CREATE TABLE a ()", "opened": "GRANT USAGE ON SCHEMA mine TO CURRENT_USER",
	} {
		t.Run(what, func(t *testing.T) {
			working := s.Child(t, crash.Stop+crash.OverlayListed)
			defer working.Kill()
			w := s.Made(t, database.SingleLogin)
			owner := s.Owner(t, w)
			check.Must(owner.Exec(`CREATE TABLE a (); CREATE SCHEMA mine CREATE TABLE b ();
				REVOKE USAGE ON SCHEMA mine FROM CURRENT_USER`))(t)
			opted := w.OptIn()
			answered := make(chan string, 1)
			go func() {
				_, reason, err := s.Send(opted)
				answered <- fmt.Sprint(reason, err)
			}()
			working.Stopped(t)
			check.Must(owner.Exec(meanwhile))(t)
			working.Thaw(t)
			if got := <-answered; got != "<nil>" {
				t.Error(got)
			}
			nothingLacks(t, s, w)
			if what == "opened" {
				check.Must(owner.Exec("TABLE mine.b"))(t)
			}
		})
	}
}
