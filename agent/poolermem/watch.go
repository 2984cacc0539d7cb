package poolermem

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/resting"
)

// Bounds of PgBouncer's memory, in bytes. PgBouncer with 10,000 idle clients takes some 400 MiB.
const (
	DefaultBound = 1 << 30
	LeastBound   = 64 << 20
)

const (
	// lookPause is short, because a few clients fill some 100 MB in a second.
	lookPause = 250 * time.Millisecond
	// lookTime bounds one look, with the clients that it ends.
	lookTime = 30 * time.Second
	// Statistics have a line for each entry. While memory is well below the bound, and where it does not grow, they are read anew
	// at this pause; where it grows, after an hour.
	statsPause, statsAge = 15 * time.Second, time.Hour
)

// Config says what to watch.
type Config struct {
	Console  *pooler.Console
	Pooler   pooler.Settings
	Bound    int64 // in bytes
	Holdings func(context.Context) ([]pooler.Holding, error)
	Rests    *resting.Rests
	Log      *zap.Logger
}

// Watch is the watch over PgBouncer's memory.
type Watch struct {
	Config
	seldom loop.Seldom
	ended  atomic.Int64
	before baseline
	// mark is where clients are ended: the bound or, where PgBouncer had more and nobody was found who holds it, somewhat above
	// what it had then. Otherwise memory that does not come back would end everybody.
	mark int64
}

// baseline is what clients had sent when there was so much memory.
type baseline struct {
	at     time.Time
	memory int64
	sent   map[string]traffic
}

// New makes a watch; Run runs it.
func New(c Config) *Watch {
	// The first baseline is a PgBouncer that nobody has sent anything.
	return &Watch{Config: c, mark: c.Bound, before: baseline{at: time.Now()}}
}

// Ended counts the clients that were ended for what they held.
func (w *Watch) Ended() int64 { return w.ended.Load() }

// Run looks again and again until ctx ends. It does nothing where the agent cannot see PgBouncer's process.
func (w *Watch) Run(ctx context.Context) {
	loop.Run(ctx, w.Log, nil, "PgBouncer's memory could not be kept within its bound",
		func(ctx context.Context) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(ctx, lookTime)
			defer cancel()
			m, known := w.Console.Memory(ctx)
			if !known {
				return time.Second, nil
			}
			err := w.look(ctx, m.Private)
			if errors.Is(err, pooler.ErrUnreachable) { // another part says so
				return time.Second, nil
			}
			return lookPause, err
		})
}

func (w *Watch) look(ctx context.Context, private int64) error {
	slabs, err := w.slabs(ctx)
	if err != nil {
		return err
	}
	memory := private - slabs.free
	if memory <= w.Bound {
		w.mark = w.Bound
	}
	if memory > w.mark {
		return w.relieve(ctx, memory, slabs.unsent)
	}
	age := time.Since(w.before.at)
	if age > statsAge || age > statsPause && (memory <= w.Bound/2 || memory <= w.before.memory) {
		sent, err := w.sent(ctx)
		if err != nil {
			return err
		}
		w.before = baseline{at: time.Now(), memory: memory, sent: sent}
	}
	return nil
}

// relieve ends clients, and says whose.
func (w *Watch) relieve(ctx context.Context, memory, unsent int64) error {
	now := census{
		bound: w.Bound, memory: memory, unsent: unsent, packet: int64(w.Pooler.MaxPacket), uncapped: w.Pooler.UncappedPoolSize,
	}
	var err error
	if now.holdings, err = w.Holdings(ctx); err != nil {
		return fmt.Errorf("whose databases there are: %w", err)
	}
	if now.clients, err = w.clients(ctx); err != nil {
		return err
	}
	sent, err := w.sent(ctx)
	if err != nil {
		return err
	}
	now.sent, now.growth = since(w.before.sent, sent), memory-w.before.memory
	chosen := now.surplus()
	for _, c := range chosen {
		if err := w.Console.KillClients(ctx, c.clients...); err != nil {
			return err
		}
		w.ended.Add(int64(len(c.clients)))
		for _, d := range c.databases {
			w.Rests.Ended(d)
		}
		w.seldom.Warn(w.Log, "account "+c.account+c.databases[0], "clients were ended that may hold much of PgBouncer's memory, of "+
			"an account that holds more than its share", zap.String("account", c.account), zap.Strings("databases", c.databases),
			zap.Int("clients", len(c.clients)), zap.Int64("held", c.bytes), zap.Int64("memory", memory), zap.Int64("limit", w.Bound))
	}
	if len(chosen) == 0 {
		w.seldom.Warn(w.Log, "nobody", "PgBouncer has more memory than its limit, and no account holds more than its share",
			zap.Int64("memory", memory), zap.Int64("limit", w.Bound))
	}
	return w.settle(ctx, sent)
}

// settle begins anew with what is left.
func (w *Watch) settle(ctx context.Context, sent map[string]traffic) error {
	m, _ := w.Console.Memory(ctx)
	slabs, err := w.slabs(ctx)
	w.before = baseline{at: time.Now(), memory: m.Private - slabs.free, sent: sent}
	w.mark = max(w.Bound, w.before.memory+w.Bound/8)
	return err
}

// slabs are PgBouncer's own pools of memory.
type slabs struct{ free, unsent int64 }

func (w *Watch) slabs(ctx context.Context) (s slabs, err error) {
	err = w.Console.Show(ctx, "SHOW MEM", func(r map[string]string) {
		s.free += number(r["size"]) * number(r["free"])
		if r["name"] == "outstanding_request_cache" {
			s.unsent = number(r["size"]) * number(r["used"])
		}
	})
	return s, err
}

// sent is what each entry's clients have sent since PgBouncer was started.
func (w *Watch) sent(ctx context.Context) (map[string]traffic, error) {
	sent := make(map[string]traffic)
	err := w.Console.Show(ctx, "SHOW STATS", func(r map[string]string) {
		sent[r["database"]] = traffic{number(r["total_received"]), number(r["total_client_parse_count"])}
	})
	return sent, err
}

// since is what was sent after before, also by a PgBouncer that was started again meanwhile.
func since(before, now map[string]traffic) map[string]traffic {
	sent := make(map[string]traffic, len(now))
	for entry, n := range now {
		if b := before[entry]; b.bytes <= n.bytes && b.statements <= n.statements {
			n = traffic{n.bytes - b.bytes, n.statements - b.statements}
		}
		sent[entry] = n
	}
	return sent
}

// clients leaves out those of the unix socket, where only the agent comes from.
func (w *Watch) clients(ctx context.Context) (all []client, err error) {
	err = w.Console.Show(ctx, "SHOW SOCKETS", func(r map[string]string) {
		one := client{
			id: r["id"], entry: r["database"], statements: number(r["prepared_statements"]), unfinished: number(r["pkt_remain"]),
			linked: r["link"] != "", login: r["state"] == "cl_login", server: r["type"] == "S",
		}
		if one.server || r["addr"] != "unix" {
			all = append(all, one)
		}
	})
	return all, err
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // what is no number counts as none
	return n
}
