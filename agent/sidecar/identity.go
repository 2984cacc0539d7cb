package sidecar

import "slices"

// typeBounds are those of the types that an identity column can have.
var typeBounds = map[string][]string{
	"MINVALUE": {"-32768", "-2147483648", "-9223372036854775808"},
	"MAXVALUE": {"32767", "2147483647", "9223372036854775807"},
}

// identityBounds leaves out the bounds of an identity column's sequence that are no others than its type's. CREATE TABLE
// (LIKE ... INCLUDING IDENTITY) makes a sequence of bigint, with the bounds of the column's type. It comes back as one of that
// type, for which pg_dump writes NO MAXVALUE.
func identityBounds(list []node) {
	at := slices.IndexFunc(list, func(n node) bool { return n.text == "IDENTITY" }) + 1
	if at == 0 || at == len(list) || list[0].text != "ALTER" || list[at].text != "(" {
		return
	}
	var kids []node
	for options := list[at].kids; len(options) > 0; {
		n := typeBound(options)
		if n == 0 {
			kids, n = append(kids, options[0]), 1
		}
		options = options[n:]
	}
	list[at].kids = kids
}

// typeBound is how many of the words at the beginning are such a bound.
func typeBound(options []node) int {
	if len(options) > 1 && options[0].text == "NO" && typeBounds[options[1].text] != nil {
		return 2
	}
	value := ""
	for i := 1; i < min(3, len(options)); i++ {
		value += options[i].text
		if slices.Contains(typeBounds[options[0].text], value) {
			return i + 1
		}
	}
	return 0
}
