package follow

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

//go:embed schema.sql
var readSchema string

// schemaOf is a mark of what a database is beside what its tables, sequences and large objects hold.
func schemaOf(ctx context.Context, q pg.Querier, op id.OperationID) (string, error) {
	mark, err := pg.One[string](ctx, q, readSchema, NameOf(op))
	if err != nil {
		return "", fmt.Errorf("read what the database is: %w", err)
	}
	return mark, nil
}

// untelling are the kinds of which a change does not change what a rehearsal of the database finds: a copy has them without more,
// or leaves them out and says so, and a further partition is as its siblings are.
var untelling = []string{
	"partition", "privileges", "default privileges", "privileges on the database", "setting",
}

// tellingOf is a digest of a mark that changes with what can change the verdict of a rehearsal.
func tellingOf(mark string) (string, error) {
	var kinds map[string]string
	if err := json.Unmarshal([]byte(mark), &kinds); err != nil {
		return "", fmt.Errorf("what the database is: %w", err)
	}
	for _, kind := range untelling {
		delete(kinds, kind)
	}
	text, err := json.Marshal(kinds)
	if err != nil {
		return "", fmt.Errorf("what the database is: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// altered is ReasonAltered where two marks differ; it says in what.
func altered(then, now string) error {
	if then == now {
		return nil
	}
	var before, after map[string]string
	kinds := map[string]bool{}
	if json.Unmarshal([]byte(then), &before) == nil && json.Unmarshal([]byte(now), &after) == nil {
		for _, one := range []map[string]string{before, after} {
			for kind := range one {
				if before[kind] != after[kind] {
					kinds[kind] = true
				}
			}
		}
	}
	return command.Refuse(command.ReasonAltered,
		"while the database was moved, something in it was changed that cannot be followed: %s",
		strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
}

const (
	// mostObjects and mostObjectBytes bound the large objects that are compared while customers are kept out.
	mostObjects     = 20_000
	mostObjectBytes = 32 << 20
)

// manyObjects is whether there are more of them.
var manyObjects = fmt.Sprintf(`SELECT (SELECT count(*) FROM (SELECT FROM pg_largeobject_metadata LIMIT %[1]d) few) = %[1]d
	OR pg_relation_size('pg_largeobject') > %[2]d`, mostObjects, mostObjectBytes)

// objectsIn is a mark of the large objects of a database, with their owners and privileges; that there are too many is one, too.
// PostgreSQL's stream of changes has nothing of them.
func objectsIn(ctx context.Context, q pg.Querier) (string, error) {
	const query = `SELECT concat_ws(' ',
		(SELECT concat(count(*), ' ', sum(hashtextextended(t::text, 0)::numeric)) FROM pg_largeobject_metadata t),
		(SELECT concat(count(*), ' ', sum(hashtextextended(concat(loid, ' ', pageno, ' ', md5(data)), 0)::numeric))
			FROM pg_largeobject))`
	many, err := pg.One[bool](ctx, q, manyObjects)
	if err != nil || many {
		return "many", err
	}
	mark, err := pg.One[string](ctx, q, query)
	if err != nil {
		return "", fmt.Errorf("read large objects: %w", err)
	}
	return mark, nil
}
