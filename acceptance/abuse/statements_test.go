package abuse_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// hoardStatements prepares large statements at the pooler, one after the other, and begins anew when it is ended.
func hoardStatements(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	d := m.database(t, "hoard")
	url := m.PoolerURL(d.Name+".transaction", d.Username, d.Password)
	const size = 4 << 20
	text := string(bytes.Repeat([]byte("x"), size))
	ended := new(atomic.Int64)
	for client := range 2 {
		again(t, func(ctx context.Context) {
			conn, err := pgconn.Connect(ctx, url)
			if err != nil {
				wait(ctx, 100*time.Millisecond)
				return
			}
			raw, err := conn.Hijack()
			if err != nil {
				return
			}
			defer raw.Conn.Close()
			go func() { _, _ = io.Copy(io.Discard, raw.Conn) }()
			for n := 0; ctx.Err() == nil; n++ {
				body := fmt.Sprintf("s%d\x00SELECT 1 -- %d %d%s\x00\x00\x00", n, client, n, text)
				parse := binary.BigEndian.AppendUint32([]byte{'P'}, uint32(len(body)+4))
				if _, err := raw.Conn.Write(append(append(parse, body...), 'S', 0, 0, 0, 4)); err != nil {
					ended.Add(1)
					return
				}
			}
		})
	}
	for deadline := time.Now().Add(patience); ended.Load() == 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	return func(t *testing.T) {
		if ended.Load() == 0 {
			t.Error("no client was ended")
		}
	}
}

// poolerMiB is PgBouncer's memory. The C library keeps some of what was freed. An agent whose last look took too long does not
// say it, and is asked again.
var poolerMiB = shared{what: "MiB of PgBouncer", slack: 64, look: func(ctx context.Context, w *world) (float64, error) {
	for ; ; wait(ctx, 100*time.Millisecond) {
		text, err := w.AgentMetrics(ctx, w.agent)
		if err != nil {
			return 0, err
		}
		if _, after, said := strings.Cut(text, "\npgherd_agent_pgbouncer_resident_memory_bytes{"); said {
			line, _, _ := strings.Cut(after, "\n")
			size, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			return size / (1 << 20), err
		}
	}
}}
