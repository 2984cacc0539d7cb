package dev

import (
	"fmt"
	"io"

	"github.com/pgherd/pgherd/agent/floors"
)

// developmentLanguages lets every procedural language pass: nobody's rotation depends on a development host.
var developmentLanguages = floors.Policy{Development: true}

// sayWarnings prints what agent init warns of, such as languages that every other host refuses, once at a start.
func sayWarnings(out io.Writer, warnings []string) {
	for _, w := range warnings {
		_, _ = fmt.Fprintf(out, "note: %s\n", w)
	}
}
