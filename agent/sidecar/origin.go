package sidecar

import (
	"bufio"
	"io"
	"regexp"

	"github.com/pgherd/pgherd/agent/pg"
)

// Origin is what has written a dump, as its head says: the versions of PostgreSQL and of pg_dump.
type Origin struct{ Server, PgDump string }

func (o Origin) String() string { return "PostgreSQL " + o.Server + " and pg_dump " + o.PgDump }

// headSize is more than what stands before the end of the two lines.
const headSize = 512

var (
	// comments are the lines before the first statement. What stands further down, a customer may have written.
	comments   = regexp.MustCompile(`\A(?:(?:--.*|\\.*|\s*)\n)*`)
	fromServer = regexp.MustCompile(`(?m)^-- Dumped from database version ([0-9.]{1,20})`)
	byPgDump   = regexp.MustCompile(`(?m)^-- Dumped by pg_dump version ([0-9.]{1,20})`)
)

// major is that of the server, where the dump says it.
func (o Origin) major() major { return majorOf(o.Server) }

// majorOf is the one at the beginning of what a server calls its version.
func majorOf(version string) major { return major(pg.Major(version)) }

// OriginOf reads the head of a dump, which the first statement ends, and returns a reader of the whole.
func OriginOf(dump io.Reader) (Origin, io.Reader) {
	whole := bufio.NewReaderSize(dump, headSize)
	head, _ := whole.Peek(headSize) // an error is one of the next Read too
	head = comments.Find(head)
	version := func(line *regexp.Regexp) string {
		if found := line.FindSubmatch(head); found != nil {
			return string(found[1])
		}
		return "of an unknown version"
	}
	return Origin{version(fromServer), version(byPgDump)}, whole
}
