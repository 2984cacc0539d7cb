package svc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// verb is a command of scripts. In usage, words in capitals are values, where "A..." is any number of them; of "a|b" one has to
// be given, which is a value too; all others are given as they stand.
type verb struct {
	usage string
	do    func(r *run, values []string) error
}

// run is the running of one line of a script.
type run struct {
	*service
	ts *testscript.TestScript
}

// verbs makes testscript's commands of the tables: one for each first word.
func verbs() map[string]func(*testscript.TestScript, bool, []string) {
	known := map[string][]verb{}
	for _, v := range slices.Concat(runs, outputs, orders, services, faults) {
		name, _, _ := strings.Cut(v.usage, " ")
		known[name] = append(known[name], v)
	}
	commands := map[string]func(*testscript.TestScript, bool, []string){}
	for name, list := range known {
		commands[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			ts.Check(dispatch(ts, neg, list, append([]string{name}, args...)))
		}
	}
	return commands
}

func dispatch(ts *testscript.TestScript, neg bool, list []verb, words []string) error {
	if neg {
		return fmt.Errorf("%s cannot be negated", words[0])
	}
	usage := []string{"usage:"}
	for _, v := range list {
		if values, ok := match(strings.Fields(v.usage), words); ok {
			return v.do(&run{service: serviceOf(ts), ts: ts}, values)
		}
		usage = append(usage, v.usage)
	}
	return fmt.Errorf("%s", strings.Join(usage, "\n\t"))
}

// match returns the values that words have for a usage.
func match(usage, words []string) (values []string, ok bool) {
	for i, u := range usage {
		switch {
		case strings.HasSuffix(u, "..."):
			return append(values, words[i:]...), true
		case i >= len(words):
			return nil, false
		case strings.ToUpper(u) == u:
			values = append(values, words[i])
		case strings.Contains(u, "|"):
			if !slices.Contains(strings.Split(u, "|"), words[i]) {
				return nil, false
			}
			values = append(values, words[i])
		case u != words[i]:
			return nil, false
		}
	}
	return values, len(words) == len(usage)
}
