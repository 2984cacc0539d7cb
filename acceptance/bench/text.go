package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/hosts/cluster"
)

// textDatabase is a database full of text-like rows.
type textDatabase struct {
	wire.CreatedDatabase
	size int64
	last *operation.BackupResult // the last backup of it
}

// textBytes is how much COPY text goes in. On disk, and in a dump, it is a little more.
const textBytes = 560_000_000

const textTables = `CREATE TABLE article (id bigint, at timestamptz, author text, title text, body text, price numeric(12,2),
		tags jsonb);
	CREATE TABLE visit (id bigint, at timestamptz, article bigint, seconds double precision, client inet, agent text)`

// withText makes the database once and returns it to every part that asks.
func (b *bench) withText(ctx context.Context) (*textDatabase, error) {
	if b.text != nil {
		return b.text, nil
	}
	if err := b.withBatch(ctx); err != nil {
		return nil, err
	}
	if _, err := b.stack.Admin(ctx, "account", "set", "--account", b.account.ID, "--verify-backups=false"); err != nil {
		return nil, err
	}
	made, err := b.client.create(ctx, "text")
	if err != nil {
		return nil, err
	}
	text := &textDatabase{CreatedDatabase: made}
	if text.size, err = fill(ctx, b.stack.Server, made.Name, int(b.scale*textBytes)); err != nil {
		return nil, err
	}
	b.text = text
	return text, nil
}

// withBackup is withText with a backup.
func (b *bench) withBackup(ctx context.Context) (*textDatabase, error) {
	text, err := b.withText(ctx)
	if err != nil || text.last != nil {
		return text, err
	}
	done, err := stack.BackUp(ctx, b.client.Client, text.ID)
	if err != nil {
		return nil, err
	}
	text.last = &done
	return text, nil
}

// fill writes the rows as the owner, and leaves the database as a quiet one is: hint bits set, nothing dirty, all of it read
// once.
func fill(ctx context.Context, server *cluster.Postgres, name string, bytes int) (size int64, err error) {
	conn, err := pgconn.Connect(ctx, server.URL(name))
	if err != nil {
		return 0, err
	}
	_, err = conn.Exec(ctx, "SET ROLE "+ident(name)+";"+textTables).ReadAll()
	for _, t := range []struct {
		name  string
		bytes int
		row   func(*words, io.Writer, int)
	}{{"article", bytes * 4 / 5, (*words).article}, {"visit", bytes / 5, (*words).visit}} {
		if err == nil {
			_, err = conn.CopyFrom(ctx, rows(t.bytes, t.row), "COPY "+t.name+" FROM STDIN")
		}
	}
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return 0, err
	}
	db, err := sql.Open("postgres", server.URL(name))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	for _, statement := range []string{"ALTER TABLE article ADD PRIMARY KEY (id)", "VACUUM (FREEZE, ANALYZE)", "CHECKPOINT"} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return 0, fmt.Errorf("%s: %w", statement, err)
		}
	}
	return size, db.QueryRowContext(ctx, "SELECT pg_database_size(current_database())").Scan(&size)
}

// rows is a stream of so many bytes of COPY text; the same at each run.
func rows(size int, row func(*words, io.Writer, int)) io.Reader {
	reader, writer := io.Pipe()
	go func() {
		counted := &counter{to: writer}
		out, w := bufio.NewWriterSize(counted, 1<<16), newWords()
		for n := 1; counted.bytes < size && counted.failed == nil; n++ {
			row(w, out, n)
		}
		_ = writer.CloseWithError(out.Flush()) // always nil, says its documentation
	}()
	return reader
}

type counter struct {
	to     io.Writer
	bytes  int
	failed error
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.bytes, c.failed = c.bytes+n, err
	return n, err
}

// words make sentences: a vocabulary of invented words that, as in a language, are the shorter the more frequent, and a few of
// which make up most of a text.
type words struct {
	chance     *rand.Rand
	frequent   *rand.Zipf
	vocabulary []string
}

const vocabularySize = 20_000

var syllables = strings.Fields("a ba ber cal con da del dor e en er fi ga ha in ka la len lo ma men mi na ne nor o or pa per " +
	"ra re ri ro sa sen ser so sta ta te ten ter ti to tra u un va ven ver vi za")

func newWords() *words {
	w := &words{chance: rand.New(rand.NewPCG(1, 2))}
	w.frequent = rand.NewZipf(w.chance, 1.3, 4, vocabularySize-1)
	for n := range vocabularySize {
		var word strings.Builder
		for range 1 + min(4, (n+9)/40) - w.chance.IntN(1+min(2, n/200)) {
			word.WriteString(syllables[w.chance.IntN(len(syllables))])
		}
		w.vocabulary = append(w.vocabulary, word.String())
	}
	return w
}

func (w *words) word() string { return w.vocabulary[w.frequent.Uint64()] }

// sentence writes so many words with a comma now and then.
func (w *words) sentence(n int) string {
	var s strings.Builder
	for i := range n {
		switch {
		case i > 0 && w.chance.IntN(12) == 0:
			s.WriteString(", ")
		case i > 0:
			s.WriteString(" ")
		}
		s.WriteString(w.word())
	}
	s.WriteString(".")
	return s.String()
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (w *words) at(n int) string {
	return epoch.Add(time.Duration(n)*3*time.Second + time.Duration(w.chance.IntN(3000))*time.Millisecond).
		Format("2006-01-02 15:04:05.000+00")
}

func (w *words) article(out io.Writer, n int) {
	const form = "%d\t%s\t%s.%s@example.org\t%s\t%s\t%d.%02d\t" + `{"topic": "%s", "views": %d, "draft": %t}` + "\n"
	_, _ = fmt.Fprintf(out, form, // counter keeps the error
		n, w.at(n), w.word(), w.word(), w.sentence(3+w.chance.IntN(6)), w.sentence(30+w.chance.IntN(80)), w.chance.IntN(1000),
		w.chance.IntN(100), w.word(), w.chance.IntN(100_000), w.chance.IntN(9) == 0)
}

func (w *words) visit(out io.Writer, n int) {
	const form = "%d\t%s\t%d\t%.3f\t10.%d.%d.%d\tMozilla/5.0 (%s; %s) %s/%d.%d\n"
	_, _ = fmt.Fprintf(out, form, // counter keeps the error
		n, w.at(n), w.chance.IntN(500_000), w.chance.ExpFloat64()*40, w.chance.IntN(4), w.chance.IntN(256), w.chance.IntN(256),
		w.word(), w.word(), w.word(),
		w.chance.IntN(150), w.chance.IntN(10))
}
