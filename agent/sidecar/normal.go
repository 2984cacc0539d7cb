package sidecar

import (
	"slices"
	"strings"
)

// node is a word, or what stands in a pair of brackets.
type node struct {
	text string // of the word, or the opening bracket
	kids []node
}

// A statement with deeper brackets, or whose casts multiply, is compared as it is. PostgreSQL's own stack allows for fewer.
const (
	deepest   = 20000
	mostWords = 1 << 20
)

// normal is the text of a statement, but for what PostgreSQL itself writes in another way when it has read its own text. White
// space and comments do not count. Otherwise these do not:
//
//   - A cast of an array is one of each of its elements: (ARRAY['a'::varchar])::text[] comes back as ARRAY[('a'::varchar)::text].
//   - ((a OR b) OR c) comes back as (a OR b OR c), and so with AND.
//   - The columns of a table with parents come back with the inherited ones first.
//   - The bounds of an identity column, where they are those of its type, can come back as none.
func normal(words []word) string {
	list, ok := normalTree(words)
	if !ok {
		var parts []string
		for _, w := range words {
			parts = append(parts, w.text)
		}
		return strings.Join(parts, " ")
	}
	return written(list)
}

// normalTree is false where the brackets are no tree.
func normalTree(words []word) (list []node, ok bool) {
	if list, ok = tree(words); !ok {
		return nil, false
	}
	list = (&rewriter{left: mostWords}).rewritten(list)
	identityBounds(list)
	if i := slices.IndexFunc(list, func(n node) bool { return n.text == "(" }); i > 0 && hasLeaf(list[i:], "INHERITS") {
		columns := elements(list[i].kids)
		slices.SortFunc(columns, func(a, b []node) int { return strings.Compare(written(a), written(b)) })
		list[i].kids = joined(columns)
	}
	return list, true
}

func tree(words []word) ([]node, bool) {
	stack := [][]node{nil}
	var open []string
	for _, w := range words {
		top := len(stack) - 1
		switch w.text {
		case "(", "[":
			if top == deepest {
				return nil, false
			}
			stack, open = append(stack, nil), append(open, w.text)
		case ")", "]":
			if top == 0 {
				return nil, false
			}
			group := node{open[top-1], stack[top]}
			stack, open = stack[:top], open[:top-1]
			stack[top-1] = append(stack[top-1], group)
		default:
			stack[top] = append(stack[top], node{text: w.text})
		}
	}
	return stack[0], len(stack) == 1
}

func (n node) group() bool { return n.text == "(" || n.text == "[" }

func written(list []node) string {
	var b strings.Builder
	write(&b, list)
	return b.String()
}

func write(b *strings.Builder, list []node) {
	for _, n := range list {
		b.WriteString(n.text)
		b.WriteByte(' ')
		if n.group() {
			write(b, n.kids)
			b.WriteString(") ")
		}
	}
}

// rewriter bounds how many words casts may come to.
type rewriter struct{ left int }

func (r *rewriter) rewritten(list []node) []node {
	var out []node
	for _, n := range list {
		if n.group() {
			n.kids = flattened(r.rewritten(n.kids))
		}
		out = append(out, n)
		out = r.castElements(out)
	}
	return out
}

// castElements replaces a cast of an array at the end of the list.
func (r *rewriter) castElements(list []node) []node {
	end := len(list) - 1
	if list[end].text != "[" || len(list[end].kids) > 0 {
		return list
	}
	from := end - 1
	for from > 0 && ofType(list[from]) {
		from--
	}
	if from < 1 || list[from].text != "::" || from == end-1 {
		return list
	}
	kind, subject := list[from+1:end], list[from-1]
	switch {
	case r.left <= 0:
		return list
	case subject.text == "(" && isArray(subject.kids):
		return append(list[:from-1], r.cast(subject.kids, kind, true)...)
	case from > 1 && isArray(list[from-2:from]):
		return append(list[:from-2], r.cast(list[from-2:from], kind, false)...)
	}
	return list
}

func isArray(list []node) bool {
	return len(list) == 2 && list[0].text == "ARRAY" && list[1].text == "["
}

// ofType reports whether a node can belong to the name of a type.
func ofType(n node) bool {
	switch n.text {
	case "(":
		return !slices.ContainsFunc(n.kids, func(k node) bool { return k.text != "," && (k.text[0] < '0' || k.text[0] > '9') })
	case ".":
		return true
	}
	_, named := identifier(n.text)
	return named
}

// cast casts each element of an array, in parentheses or without, as PostgreSQL writes it there.
func (r *rewriter) cast(array, kind []node, parentheses bool) []node {
	var casts [][]node
	for _, e := range elements(array[1].kids) {
		switch {
		case isArray(e):
			e = r.cast(e, kind, parentheses)
		case parentheses:
			e = append([]node{{"(", e}, {text: "::"}}, kind...)
		default:
			e = append(append(slices.Clone(e), node{text: "::"}), kind...)
		}
		casts = append(casts, e)
		r.left -= len(e)
	}
	return []node{{text: "ARRAY"}, {"[", joined(casts)}}
}

// elements splits a list at its commas.
func elements(list []node) (parts [][]node) {
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(n node) bool { return n.text == "," })
		if n < 0 {
			return append(parts, list)
		}
		parts, list = append(parts, list[:n]), list[n+1:]
	}
	return parts
}

func joined(parts [][]node) (list []node) {
	for i, part := range parts {
		if i > 0 {
			list = append(list, node{text: ","})
		}
		list = append(list, part...)
	}
	return list
}

// flattened takes the parentheses off a first operand that has the same connective.
func flattened(list []node) []node {
	if len(list) < 3 || list[0].text != "(" || list[1].text != "OR" && list[1].text != "AND" {
		return list
	}
	inner := list[0].kids
	if !hasLeaf(inner, list[1].text) {
		return list
	}
	return append(inner, list[1:]...)
}

func hasLeaf(list []node, text string) bool {
	return slices.ContainsFunc(list, func(n node) bool { return n.text == text })
}
