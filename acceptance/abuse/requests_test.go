package abuse_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/stack/stacktest"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
)

// tryKeys sends keys that do not exist, from the bystander's own address.
func tryKeys(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	from := m.world.newCustomer(t, "neighbour", "127.0.0.2")
	limited, n := new(atomic.Int64), 0
	again(t, func(ctx context.Context) {
		n++
		key, _ := account.NewKey(account.AccountKey, fmt.Sprintf("%040d", n))
		_, err := from.with(t, key).Databases.List().Page(ctx, apiclient.Page{})
		if stacktest.Code(err) == fault.RateLimited {
			limited.Add(1)
		}
		wait(ctx, 5*time.Millisecond)
	})
	for deadline := time.Now().Add(patience); limited.Load() == 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	return func(t *testing.T) {
		if limited.Load() == 0 {
			t.Error("the address was never shut out")
		}
	}
}

// fillAPI opens a thousand connections, each with half a request.
func fillAPI(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	const wanted = 1000
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.9")}, Timeout: patience}
	closed := new(atomic.Int64)
	for range wanted {
		conn := must(dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(m.api.URL, "http://")))(t)
		t.Cleanup(func() { _ = conn.Close() }) // the service may have closed it
		_, _ = fmt.Fprint(conn, "GET /api/v1/databases HTTP/1.1\r\nHost: x\r\nX-Slow: ")
		go func() {
			_, _ = io.Copy(io.Discard, conn) // until its end
			closed.Add(1)
		}()
	}
	// One address may have so many.
	return func(t *testing.T) {
		const most = 256
		if closed := closed.Load(); closed < wanted-most {
			t.Errorf("%d of %d connections from one address were closed, and %d may stay", closed, wanted, most)
		}
	}
}

// readLongLists asks for a list of 50,000 entries without a limit, as often as the default limits let one key.
func readLongLists(t *testing.T, m *mallory) (stillOn func(*testing.T)) {
	d := m.database(t, "lists")
	const fill = `INSERT INTO audit_entries SELECT (json_populate_record(a, json_build_object('id', gen_random_uuid()))).*
		FROM (SELECT a FROM audit_entries a WHERE database_id = $1 LIMIT 1) one, generate_series(1, 50000)`
	must(m.metadata(t).ExecContext(soon(t), fill, d.ID))(t)
	longest := new(atomic.Int64)
	again(t, func(ctx context.Context) {
		if list, err := m.Activity.List(d.ID).Page(ctx, apiclient.Page{}); err == nil {
			longest.Store(max(longest.Load(), int64(len(list.Data))))
		}
		wait(ctx, 100*time.Millisecond)
	})
	return func(t *testing.T) {
		const page = 100
		if longest := longest.Load(); longest != page {
			t.Errorf("a page had %d entries, not %d", longest, page)
		}
	}
}
