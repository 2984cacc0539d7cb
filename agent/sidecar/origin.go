package sidecar

import (
	"bufio"
	"io"
	"regexp"
)

// Origin is what has written a dump, as its head says: the versions of PostgreSQL and of pg_dump.
type Origin struct{ Server, PgDump string }

func (o Origin) String() string { return "PostgreSQL " + o.Server + " and pg_dump " + o.PgDump }

// headSize is more than what stands before the end of the two lines.
const headSize = 512

var (
	fromServer = regexp.MustCompile(`(?m)^-- Dumped from database version ([0-9.]{1,20})`)
	byPgDump   = regexp.MustCompile(`(?m)^-- Dumped by pg_dump version ([0-9.]{1,20})`)
)

// OriginOf reads the head of a dump, and returns a reader of the whole.
func OriginOf(dump io.Reader) (Origin, io.Reader) {
	whole := bufio.NewReaderSize(dump, headSize)
	head, _ := whole.Peek(headSize) // an error is one of the next Read too
	version := func(line *regexp.Regexp) string {
		if found := line.FindSubmatch(head); found != nil {
			return string(found[1])
		}
		return "of an unknown version"
	}
	return Origin{version(fromServer), version(byPgDump)}, whole
}
