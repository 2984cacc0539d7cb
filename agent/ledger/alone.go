package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Place is where an agent runs: on which machine, and with which folders. An agent of the same place is this one, started again,
// and takes its charge over at once. One of another place was started by mistake.
type Place struct {
	Machine string
	Folders []string
}

// sessionName begins the name of the session by which an agent is in charge. PostgreSQL shows 63 bytes.
const sessionName = "pgherd-agent "

func (p Place) session() string { return fmt.Sprintf("%s%.40s %s", sessionName, p.Machine, p.mark()) }

// mark tells a place from every other one.
func (p Place) mark() string {
	sum := sha256.Sum256([]byte(p.Machine + "\x00" + strings.Join(p.Folders, "\x00")))
	return fmt.Sprintf("%x", sum[:4])
}

// HeldError says that an agent of another place is in charge of the server, and at work.
type HeldError struct {
	Machine string
	Here    bool // it runs on this machine, with other folders
}

func (e *HeldError) Error() string {
	where := "on the machine " + e.Machine
	if e.Here {
		where = "on this machine, with other folders"
	}
	return "another agent is in charge of this PostgreSQL server, " + where +
		": stop that one first, or correct --postgres-host and --postgres-port here"
}

// atWork is how long ago an agent in charge has confirmed that, which it does every watchPause; one that hangs has not.
const atWork = 5

// heldPatience is how long an agent that ends may still be seen.
const heldPatience = 3 * time.Second

// checkAlone returns a *HeldError where an agent of another place is in charge and at work.
func (l *Leader) checkAlone(ctx context.Context) error {
	for began := time.Now(); ; {
		err := l.heldNow(ctx)
		if held := (*HeldError)(nil); !errors.As(err, &held) || time.Since(began) > heldPatience {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(sessionPause):
		}
	}
}

func (l *Leader) heldNow(ctx context.Context) error {
	query := fmt.Sprintf(`SELECT s.application_name FROM pg_locks k JOIN pg_stat_activity s ON s.pid = k.pid
		WHERE k.locktype = 'advisory' AND k.granted AND k.objid = %d AND k.objsubid = 1
		AND k.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND s.state_change > clock_timestamp() - interval '%d s'`, leadLock, atWork)
	found, err := first(ctx, l.conn, query)
	if err != nil || found == nil {
		return err
	}
	place, ours := strings.CutPrefix(fmt.Sprintf("%s", found), sessionName)
	at := strings.LastIndex(place, " ")
	if !ours || at < 0 || place[at+1:] == l.server.Place.mark() {
		return nil
	}
	machine := place[:at]
	return &HeldError{Machine: machine, Here: machine == fmt.Sprintf("%.40s", l.server.Place.Machine)}
}
