package pooler

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/lib/pq"
)

// A PgBouncer that hangs is there and answers nobody, so nobody starts another: neither systemd nor the dev host sees that
// anything is wrong. The agent ends it, where it may; elsewhere it asks for that with a file, which PgBouncer's units look for.

// HangTime is how long PgBouncer may be there without an answer before it is ended. The longest that it was seen to need for one,
// while it read the files of 5,000 databases with 30,000 logins, is a second.
const HangTime = 35 * time.Second

// hangFile is in the folder of PgBouncer's files while the agent wants a PgBouncer ended that it may not end itself.
const hangFile = "hangs"

// HangFile is what is there while a PgBouncer is to be ended that hangs.
func HangFile(dir string) string { return filepath.Join(dir, hangFile) }

// sign is what a look at PgBouncer has shown.
type sign int

const (
	signOfLife sign = iota
	signOfHang      // somebody listens on its socket, and does not answer
	signOfNone      // nobody listens
)

// hangGap is how long after a look the next one may be. A longer pause is of the agent itself or of the machine, which slept:
// PgBouncer could not answer either.
const hangGap = 15 * time.Second

// silence is since when PgBouncer has been there without an answer.
type silence struct {
	since, last time.Time
	turn        time.Time // when it began, or PgBouncer was last to be ended
}

// note takes a look, and reports whether PgBouncer is to be ended now: after each limit of silence once.
func (s *silence) note(now time.Time, seen sign, limit time.Duration) (end bool) {
	if seen != signOfHang || now.Sub(s.last) > hangGap {
		*s = silence{}
	}
	if seen != signOfHang {
		return false
	}
	if s.last = now; s.since.IsZero() {
		s.since, s.turn = now, now
	}
	if end = now.Sub(s.turn) >= limit; end {
		s.turn = now
	}
	return end
}

// Hang is a PgBouncer that is there and does not answer.
type Hang struct {
	Since time.Time
	// Ended is set when it was to be ended, and Err why the agent could not do that itself.
	Ended bool
	Err   error
}

// String says what becomes of it.
func (h Hang) String() string {
	text := fmt.Sprintf("PgBouncer has not answered since %s, though its process is there", h.Since.UTC().Format(time.RFC3339))
	switch {
	case h.Err != nil:
		return text + ": it has to be killed, and the agent may not: " + h.Err.Error()
	case h.Ended:
		return text + ": it was killed"
	}
	return fmt.Sprintf("%s: it is ended after %s", text, HangTime)
}

// EndHanging looks at PgBouncer again and again until ctx ends. One that has been there without an answer for limit is killed:
// whoever has started it starts another. Where the agent may not kill it, HangFile is there until PgBouncer answers or is gone.
// It calls told when PgBouncer begins to hang, with each attempt to end it, and with nil when it hangs no more.
func (p *Pooler) EndHanging(ctx context.Context, interval, limit time.Duration, told func(*Hang)) {
	var s silence
	var process int
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for hangs := false; ; {
		seen, listener := p.lookForHang(ctx)
		if ctx.Err() != nil {
			return
		}
		if listener != 0 { // later its queue may be full, and say no more whose it is
			process = listener
		}
		end := s.note(time.Now(), seen, limit)
		switch {
		case end:
			told(&Hang{Since: s.since, Ended: true, Err: p.end(process)})
		case seen == signOfHang && !hangs:
			told(&Hang{Since: s.since})
		case seen != signOfHang && hangs:
			process = 0
			told(nil)
		}
		if seen != signOfHang {
			_ = os.Remove(HangFile(p.settings.Dir))
		}
		hangs = seen == signOfHang
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// lookForHang asks PgBouncer for a sign of life. Of one that is silent it also returns the process, 0 where that is not known.
func (p *Pooler) lookForHang(ctx context.Context) (seen sign, process int) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	err := p.Ping(ctx)
	var refused *pq.Error
	if err == nil || !errors.Is(err, ErrUnreachable) || errors.As(err, &refused) {
		return signOfLife, 0
	}
	return p.behindSocket()
}

// behindSocket says whether somebody listens on the socket of a PgBouncer that does not answer, and who.
func (c *Console) behindSocket() (seen sign, process int) {
	socket := filepath.Join(c.settings.SocketDir, fmt.Sprintf(".s.PGSQL.%d", c.settings.ListenPort))
	conn, err := net.DialTimeout("unix", socket, time.Second)
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, os.ErrDeadlineExceeded): // so many wait for it already
		return signOfHang, 0
	case err != nil:
		return signOfNone, 0
	}
	defer conn.Close()
	return signOfHang, c.processBehind(conn)
}

// end kills PgBouncer's process, or asks for that.
func (p *Pooler) end(process int) error {
	err := errors.New("it does not see the process")
	if process != 0 {
		err = p.killProcess(process)
	}
	if err == nil || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	file := HangFile(p.settings.Dir)
	if failed := os.WriteFile(file, nil, 0o600); failed != nil {
		return errors.Join(err, failed)
	}
	return fmt.Errorf("%w; %s asks for it, which pgherd-pooler-hangs.path looks for", err, file)
}
