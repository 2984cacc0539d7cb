package sidecar

import (
	"io"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// The head alone says what has written a dump. It ends where the first statement begins: what comes after may be a customer's.
func TestOriginOf(t *testing.T) {
	const unknown = "of an unknown version"
	const server, program = "-- Dumped from database version 17.6 (Debian 17.6-1)\n", "-- Dumped by pg_dump version 18.1\n"
	for text, want := range map[string]Origin{
		"--\n-- PostgreSQL database dump\n--\n\n\\restrict Key\n\n" + server + program + "\nSET a = 1;": {"17.6", "18.1"},
		server + "\nSET a = 1;\n" + program:             {"17.6", unknown},
		"SET a = 1;\n" + server + program:               {unknown, unknown},
		"COMMENT ON TABLE t IS '\n" + server + "';\n":   {unknown, unknown},
		"-- Name: -- Dumped from database version 17.6": {unknown, unknown},
		"": {unknown, unknown},
	} {
		got, whole := OriginOf(strings.NewReader(text))
		if all := string(check.Must(io.ReadAll(whole))(t)); got != want || all != text {
			t.Errorf("%q: %+v, want %+v, and the text %q", text, got, want, all)
		}
	}
	if before, after := (Origin{"17.6", "18.1"}).major(), (Origin{unknown, unknown}).major(); before != 17 || after != 0 {
		t.Errorf("the major versions are %d and %d", before, after)
	}
}
