package settings

import (
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/search"
	"github.com/pgherd/pgherd/hosts/cluster/clustertest"
)

// Whatever PostgreSQL takes for a time, as customers may store it, is read as the same time.
func FuzzTimeAtTheServer(f *testing.F) { f.Fuzz(timeAtTheServer) }

func TestSearchTimeAtTheServer(t *testing.T) { search.Beyond(t, timeAtTheServer) }

// ofTimes are the pieces of which times are made, and what stands between them.
var ofTimes = []string{
	"0", "1", "7", "08", "9", "12", "60", "999", "2147483647", ".", ".5", "0x", "0X1f", "e", "e3", "E-2", "+", "-", "_", "b1", "o7",
	"us", "ms", "s", "min", "h", "d", "m", " ", "\t", "\v", "\n", "inf", "nan", "p1", "0.0005", "1.5",
}

func timeAtTheServer(t *testing.T, input []byte) {
	db := check.Must(clustertest.Database{URL: clustertest.Postgres(t).URL("postgres")}.Open(t).Conn(t.Context()))(t)
	defer db.Close()
	for len(input) > 0 {
		n := min(len(input), 1+int(input[0])%6)
		var text strings.Builder
		for _, b := range input[:n] {
			text.WriteString(ofTimes[int(b)%len(ofTimes)])
		}
		input = input[n:]
		if _, err := db.ExecContext(t.Context(), "SELECT set_config('lock_timeout', $1, false)", text.String()); err != nil {
			continue // it takes that for no time
		}
		var want int64
		check.NoError(t, db.QueryRowContext(t.Context(), "SELECT setting FROM pg_settings WHERE name = 'lock_timeout'").Scan(&want))
		if got := inMilliseconds(text.String()); got != want {
			t.Errorf("%q is read as %d ms, and by PostgreSQL as %d", text.String(), got, want)
		}
	}
}
