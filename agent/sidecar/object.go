package sidecar

import "slices"

// object is what a statement is about, as SQL names it there.
type object struct {
	kind    string // "TABLE", "TEXT SEARCH CONFIGURATION"
	name    string // as in the dump; of a routine or an operator, with its arguments
	schemas []string
}

func (o object) sql() string { return o.kind + " " + o.name }

func (o object) same(other object) bool { return o.kind == other.kind && o.name == other.name }

// The kinds of objects, each as its words.
var (
	plainKinds = [][]string{
		{"SCHEMA"}, {"TABLE"}, {"FOREIGN", "TABLE"}, {"VIEW"}, {"MATERIALIZED", "VIEW"}, {"SEQUENCE"}, {"TYPE"}, {"DOMAIN"},
		{"COLLATION"}, {"CONVERSION"}, {"STATISTICS"}, {"PUBLICATION"}, {"TEXT", "SEARCH", "CONFIGURATION"},
		{"TEXT", "SEARCH", "DICTIONARY"}, {"FOREIGN", "DATA", "WRAPPER"}, {"FOREIGN", "SERVER"}, {"SERVER"}, {"LANGUAGE"},
		{"PROCEDURAL", "LANGUAGE"},
	}
	routineKinds = [][]string{{"FUNCTION"}, {"PROCEDURE"}, {"AGGREGATE"}}
	methodKinds  = [][]string{{"OPERATOR", "CLASS"}, {"OPERATOR", "FAMILY"}}
)

// object consumes kind and name. Only the name of a routine or an operator goes on after its last part, with what cannot be
// a command: the types and names of arguments.
func (c *cursor) object() (object, error) {
	kind := c.at
	oneOf := func(kinds [][]string) bool {
		return slices.ContainsFunc(kinds, func(words []string) bool { return c.take(words...) })
	}
	var rest func() error
	switch {
	case oneOf(plainKinds):
		rest = func() error { return nil }
	case oneOf(routineKinds):
		rest = c.arguments
	case oneOf(methodKinds):
		rest = c.method
	case oneOf([][]string{{"OPERATOR"}}):
		rest = c.operands
	default:
		return object{}, errNotUnderstood
	}
	name := c.at
	if err := c.qualified(); err != nil {
		return object{}, err
	}
	err := rest()
	return object{text(c.words[kind:name]), text(c.words[name:c.at]), schemas(c.words[name:c.at])}, err
}

// qualified consumes a name of one or more parts. That of an operator ends with the dot.
func (c *cursor) qualified() error {
	for {
		if _, err := c.name(); err != nil {
			return err
		}
		if !c.take(".") {
			return nil
		}
		if operator(c.peek()) && c.peek() != "" {
			return nil
		}
	}
}

func (c *cursor) method() error {
	if !c.take("USING") {
		return errNotUnderstood
	}
	_, err := c.name()
	return err
}

func (c *cursor) operands() error {
	if c.peek() == "" || !operator(c.peek()) {
		return errNotUnderstood
	}
	c.at++
	return c.arguments()
}

// arguments consumes a list in parentheses, which has none within.
func (c *cursor) arguments() error {
	if !c.take("(") {
		return errNotUnderstood
	}
	for !c.take(")") {
		text := c.peek()
		if _, named := identifier(text); !named && !slices.Contains(argumentWords, text) {
			return errNotUnderstood
		}
		c.at++
	}
	return nil
}

// argumentWords may stand between the names and types of arguments.
var argumentWords = []string{".", ",", "[", "]", "*", "IN", "OUT", "INOUT", "VARIADIC", "ORDER", "BY", "NONE"}

// schemas are those that a name and the types in it are in. Whoever uses the name needs them.
func schemas(words []word) (list []string) {
	for i := 1; i < len(words); i++ {
		if words[i].text != "." || i > 1 && words[i-2].text == "." {
			continue
		}
		if name, ok := identifier(words[i-1].text); ok && name != "pg_catalog" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}
