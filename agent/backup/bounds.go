package backup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/pgherd/pgherd/agent/content"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/pg"
)

// What a database holds beside its rows is read into memory, several times. A customer can make a lot of it in little space, so
// it has bounds: beyond them the backup fails, and says why.

// mostSchema bounds all definitions and comments, which pg_dump keeps in memory, several times, and the text of a sidecar, of
// whose statements a verification keeps a sum each. A limit of pg_dump's memory would not do: where it gets no more, it may leave
// a definition out, and says nothing.
const mostSchema = 256 << 20

// definitionsQuery adds up how long they are. PostgreSQL knows that without unpacking any.
const definitionsQuery = `SELECT sum(total) FROM (
	SELECT sum(64 + octet_length(description)) FROM pg_description
	UNION ALL SELECT sum(octet_length(prosrc) + coalesce(octet_length(prosqlbody::text), 0)) FROM pg_proc
	UNION ALL SELECT sum(octet_length(ev_qual::text) + octet_length(ev_action::text)) FROM pg_rewrite
	UNION ALL SELECT sum(octet_length(adbin::text)) FROM pg_attrdef
	UNION ALL SELECT sum(octet_length(conbin::text)) FROM pg_constraint
	UNION ALL SELECT sum(coalesce(octet_length(indexprs::text), 0) + coalesce(octet_length(indpred::text), 0)) FROM pg_index
	UNION ALL SELECT sum(coalesce(octet_length(polqual::text), 0) + coalesce(octet_length(polwithcheck::text), 0)) FROM pg_policy
	UNION ALL SELECT sum(octet_length(tgqual::text)) FROM pg_trigger) s (total)`

// boundDefinitions returns a *content.TooMuchError where they are too long for pg_dump.
func boundDefinitions(ctx context.Context, q pg.Querier) error {
	total, err := pg.One[int64](ctx, q, definitionsQuery)
	if err != nil {
		return fmt.Errorf("read how long definitions are: %w", err)
	}
	if total > mostSchema {
		return &content.TooMuchError{What: "its definitions and comments", Most: mostSchema}
	}
	return nil
}

// overBoundError is a bound that a database exceeds. Its text may be shown to the customer; another attempt would end the same.
type overBoundError struct {
	what  string
	cause error
}

func (e *overBoundError) Error() string {
	return "the database has more than a backup takes: " + e.what
}

func (e *overBoundError) Unwrap() error { return e.cause }

// overBound says of an error by which bound it was caused, where it was.
func overBound(err error) error {
	var much *content.TooMuchError
	switch {
	case errors.As(err, &much):
		return &overBoundError{much.Error(), err}
	case errors.Is(err, dumpsql.ErrStatementTooLong):
		return &overBoundError{"a definition or comment is longer than 64 MiB", err}
	}
	return err
}

// copyWithin copies a schema, up to the bound.
func copyWithin(dst io.Writer, src io.Reader) error {
	n, err := io.Copy(dst, io.LimitReader(src, mostSchema+1))
	if err == nil && n > mostSchema {
		err = &content.TooMuchError{What: "its definitions, privileges and comments", Most: mostSchema}
	}
	return err
}
