package past

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/recovery"
)

// search looks until the moment is found.
func (x *Past) search(ctx context.Context, j jobs.Job, c command.FindMoment, tell jobs.Tell) (r command.SearchReport, err error) {
	until, err := recovery.ParseUntil(c.Question.Until)
	if err != nil {
		return r, err
	}
	s := recovery.Search{From: c.From, To: c.To, Gaps: c.Gaps}
	err = x.withEye(ctx, j, c.From, c.To, tell, func(ctx context.Context, e *eye) error {
		var looks []recovery.Sight
		for {
			at, more := s.Next(looks)
			if !more {
				r.Sealed, err = c.Question.Seal(j.OperationID, s.Result(looks))
				return err
			}
			progress := s.Progress(looks)
			side, err := e.at(ctx, at, func(stage string, _ int, bytes command.Bytes) { tell(stage, progress, bytes) })
			if err != nil {
				return err
			}
			tell(recovery.Asking, progress, command.Bytes{})
			x.Crash("look.asking")
			answer, err := ask(ctx, side, j.OperationID, c.Question.Query)
			if err != nil {
				return err
			}
			looks = append(looks, recovery.Sight{At: at, Answer: answer, Holds: until.Holds(answer.Text)})
		}
	})
	return r, err
}

const (
	// askTime bounds a query at one moment.
	askTime = time.Minute
	// askEnd is how much longer it may take until it has ended.
	askEnd = 15 * time.Second
	// mostAnswer is how long an answer may be, in characters.
	mostAnswer = 1000
)

// askOptions are those of a session that a customer's query is run in. Others are as the customer has set them.
var askOptions = fmt.Sprintf("-c statement_timeout=%d -c lock_timeout=0 -c idle_in_transaction_session_timeout=%d"+
	" -c default_transaction_read_only=on -c max_parallel_workers_per_gather=0 -c jit=off -c work_mem=64MB"+
	" -c TimeZone=UTC -c DateStyle=ISO,MDY -c IntervalStyle=postgres -c extra_float_digits=1 -c bytea_output=hex",
	askTime.Milliseconds(), askTime.Milliseconds())

// missing are the SQLSTATEs of a query that names what is not there.
var missing = []string{"42P01", "42703", "42883", "42704", "3F000"}

// wrongQuery is a refusal of a query.
func wrongQuery(format string, args ...any) error {
	return &refusal{command.ReasonInvalid, "query", fmt.Sprintf(format, args...)}
}

// ask has a query answered in the side, with the rights of the database's owner, who is the only one to get in beside the agent.
// It is hostile: it can take time, memory and files up to a bound, and write nothing. What PostgreSQL says of it may be of the
// customer's data, and goes nowhere but into the result.
func ask(ctx context.Context, side *archive.Side, op id.OperationID, query string) (a recovery.Answer, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTime+askEnd, wrongQuery("took longer than %s", askTime))
	defer cancel()
	owner := side.Database // see archive.Look
	conn, err := side.Server.Dial(ctx, owner, "", side.Database, map[string]string{
		"application_name": sessions.Name(op), "options": askOptions,
	})
	if err != nil {
		var no *pgconn.PgError
		if errors.As(err, &no) {
			return a, &refusal{command.ReasonFailed, "", "the owner of the database could not log in at " + recovery.Text(side.At()) +
				" (SQLSTATE " + no.Code + ")"}
		}
		return a, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it has only read
	a, err = answered(ctx, conn, query)
	if err != nil && ctx.Err() != nil {
		return a, context.Cause(ctx)
	}
	return a, saidOf(&a, err, side.At())
}

// answered has the query prepared as it is, so that it is one statement, and then run as a part of another, which bounds what it
// gives.
func answered(ctx context.Context, conn *pgconn.PgConn, query string) (a recovery.Answer, err error) {
	query = strings.TrimSpace(query)
	query = strings.TrimSpace(strings.TrimSuffix(query, ";"))
	if err := conn.Exec(ctx, "BEGIN READ ONLY").Close(); err != nil {
		return a, err
	}
	known, err := conn.Prepare(ctx, "", query, nil)
	switch {
	case err != nil:
		return a, err
	case len(known.ParamOIDs) > 0:
		return a, wrongQuery("must have no parameters")
	case len(known.Fields) != 1:
		return a, wrongQuery("must give one column, and gives %d", len(known.Fields))
	}
	most := strconv.Itoa(mostAnswer + 1)
	bounded := "SELECT pg_catalog.left((q.v)::pg_catalog.text, " + most + ") FROM (\n" + query + "\n) AS q (v) LIMIT 2"
	result := conn.ExecParams(ctx, bounded, nil, nil, nil, nil).Read()
	switch {
	case result.Err != nil:
		return a, result.Err
	case len(result.Rows) != 1:
		return a, wrongQuery("must give one row, and gives %s", map[bool]string{true: "none", false: "more"}[len(result.Rows) == 0])
	}
	if value := result.Rows[0][0]; value != nil {
		a.Text = new(string(value))
		if len([]rune(*a.Text)) > mostAnswer {
			return a, wrongQuery("gives more than %d characters", mostAnswer)
		}
	}
	return a, nil
}

// unsaid is an error of PostgreSQL without its message, which can be of the customer's data: it is for the log.
type unsaid struct{ *pgconn.PgError }

func (e unsaid) Error() string { return "PostgreSQL failed at the query (SQLSTATE " + e.Code + ")" }
func (e unsaid) Unwrap() error { return e.PgError }

// saidOf makes an answer of an error that says that something is not there, and refusals of the others that are PostgreSQL's.
func saidOf(a *recovery.Answer, err error, at time.Time) error {
	var no *pgconn.PgError
	var wrong *refusal
	if errors.As(err, &wrong) {
		wrong.message += ", at " + recovery.Text(at)
	}
	if !errors.As(err, &no) {
		return err
	}
	switch {
	case slices.Contains(missing, no.Code):
		a.Missing = strings.ToValidUTF8(no.Message[:min(len(no.Message), 200)], "")
		return nil
	case no.Code == "57014":
		return wrongQuery("took longer than %s at %s", askTime, recovery.Text(at))
	case no.Code == "53400", no.Code == "53200":
		return wrongQuery("needs too much memory, or too large files, at %s (SQLSTATE %s)", recovery.Text(at), no.Code)
	case strings.HasPrefix(no.Code, "57P"), strings.HasPrefix(no.Code, "58"), strings.HasPrefix(no.Code, "XX"):
		return unsaid{no}
	}
	return wrongQuery("fails at %s (SQLSTATE %s)", recovery.Text(at), no.Code)
}
