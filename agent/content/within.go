package content

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/backup"
)

// Most bounds, in bytes, each list that is made of a database: of its tables with their columns, of privileges, and of who may
// use its large objects. Some 100,000 tables of ten columns are that much.
const Most = 32 << 20

// perName and perEntry are about what a list takes beside the names in it.
const perName, perEntry = 16, 128

// TooMuchError says that there is more of something than is read into memory.
type TooMuchError struct {
	What string
	Most int // bytes
}

func (e *TooMuchError) Error() string {
	return fmt.Sprintf("%s take more than %d MiB", e.What, e.Most>>20)
}

// ReadWithin is pg.Read for what a customer can make much of. scan says how many bytes are kept of a row. The error is a
// *TooMuchError where all rows together take more than most.
func ReadWithin(ctx context.Context, q pg.Querier, what string, most int, query string, scan func(*sql.Rows) (int, error)) error {
	taken := 0
	return pg.Read(ctx, q, what, query, func(rows *sql.Rows) error {
		n, err := scan(rows)
		if taken += n; err == nil && taken > most {
			err = &TooMuchError{what, most}
		}
		return err
	})
}

// SizeOf is about how many bytes a grant takes in memory.
func SizeOf(g backup.Grant) int {
	return perEntry + len(g.Object) + len(g.Grantor) + len(g.Grantee) + sizeOf(g.Privileges) + sizeOf(g.WithOption)
}

func sizeOf(names []string) (bytes int) {
	for _, n := range names {
		bytes += perName + len(n)
	}
	return bytes
}
