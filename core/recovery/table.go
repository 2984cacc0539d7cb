package recovery

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pgherd/pgherd/core/fault"
)

// Table names a table of a database as PostgreSQL has it, without quotes.
type Table struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

// publicSchema is that of a table that is named without one.
const publicSchema = "public"

// longestName is how many bytes PostgreSQL takes of a name.
const longestName = 63

// String is the name as people write it: without the schema where that is public.
func (t Table) String() string { return strings.TrimPrefix(t.Schema+"."+t.Name, publicSchema+".") }

// ParseTable reads "table" or "schema.table" as PostgreSQL reads names: letters outside of quotes become lower case, and inside
// of double quotes everything stands for itself, two of them for one. A table without a schema is of "public".
func ParseTable(text string) (Table, error) {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return Table{}, errors.New("is no text")
	}
	var parts []string
	for rest := text; ; {
		part, after, err := identifier(rest)
		if err != nil {
			return Table{}, err
		}
		parts = append(parts, part)
		if after == "" {
			break
		}
		if after[0] != '.' || len(parts) == 2 {
			return Table{}, fmt.Errorf("must be a table, or a schema and a table with a dot between; %q is left over", after)
		}
		rest = after[1:]
	}
	if len(parts) == 1 {
		return Table{publicSchema, parts[0]}, nil
	}
	return Table{parts[0], parts[1]}, nil
}

// identifier reads one name from the beginning of a text.
func identifier(text string) (name, after string, err error) {
	if strings.HasPrefix(text, `"`) {
		name, after, err = quoted(text[1:])
	} else {
		name, after, err = plain(text)
	}
	switch {
	case err != nil:
		return "", "", err
	case name == "":
		return "", "", errors.New("has an empty name")
	case len(name) > longestName:
		return "", "", fmt.Errorf("has a name of more than %d bytes", longestName)
	}
	return name, after, nil
}

func quoted(text string) (name, after string, err error) {
	var b strings.Builder
	for {
		until := strings.IndexByte(text, '"')
		if until < 0 {
			return "", "", errors.New("has a double quote that does not end")
		}
		b.WriteString(text[:until])
		if text = text[until+1:]; !strings.HasPrefix(text, `"`) {
			return b.String(), text, nil
		}
		b.WriteByte('"')
		text = text[1:]
	}
}

// plain reads a name without quotes: a letter, an underscore or what is not ASCII, and then also digits and dollar signs.
func plain(text string) (name, after string, err error) {
	end := strings.IndexFunc(text, func(r rune) bool {
		return r < utf8.RuneSelf && r != '_' && r != '$' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	})
	if end < 0 {
		end = len(text)
	}
	name = text[:end]
	if name != "" && (name[0] == '$' || name[0] >= '0' && name[0] <= '9') || end == 0 && text != "" && text[0] != '.' {
		return "", "", errors.New("has a name that needs double quotes")
	}
	return strings.Map(func(r rune) rune { // PostgreSQL leaves alone what is not ASCII
		if r >= 'A' && r <= 'Z' {
			return r | 0x20
		}
		return r
	}, name), text[end:], nil
}

// Rescued is the name of the table in the schema of a rescue: its own or, of another schema than "public", with that and a dot
// before it. One that would be too long ends in a digest.
func (t Table) Rescued() string {
	name := t.String()
	if len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	end := "~" + hex.EncodeToString(sum[:4])
	return strings.ToValidUTF8(name[:longestName-len(end)], "") + end
}

// mostTables is how many tables a rescue is of.
const mostTables = 50

// Tables reads the tables of a rescue. VALIDATION_ERROR on "tables", or on one of them.
func Tables(texts []string) ([]Table, error) {
	if len(texts) == 0 || len(texts) > mostTables {
		return nil, fault.Invalid("tables", "must be 1 to %d tables", mostTables)
	}
	list, seen := make([]Table, 0, len(texts)), map[string]Table{}
	for i, text := range texts {
		t, err := ParseTable(text)
		if err != nil {
			return nil, fault.Invalid(TableField(i), "%s", err.Error())
		}
		if other, taken := seen[t.Rescued()]; taken {
			return nil, fault.Invalid(TableField(i), "%s would have the name that %s has in the schema", t, other)
		}
		seen[t.Rescued()] = t
		list = append(list, t)
	}
	return list, nil
}

// TableField is what requests call the table of an index.
func TableField(i int) string { return fmt.Sprintf("tables[%d]", i) }
