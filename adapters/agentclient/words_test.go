package agentclient_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The words of the wire and of the port must stay the same: a word of one that the other does not have fails here.
func TestWordsOfPortAndProtocolAreEqual(t *testing.T) {
	for portPrefix, wirePrefix := range map[string]string{"Reason": "Reason", "Backup": "Backup"} {
		port, wire := constants(t, "../../ports", portPrefix), constants(t, "../../agent/protocol", wirePrefix)
		if !slices.Equal(port, wire) {
			t.Errorf("constants %s...: the port has %v, the protocol %v", portPrefix, port, wire)
		}
	}
}

// constants returns the sorted values of all string constants of a package whose names begin with prefix.
func constants(t *testing.T, folder, prefix string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, constantsOf(file, prefix)...)
	}
	if len(values) == 0 {
		t.Fatalf("%s has no constants %s...", folder, prefix)
	}
	slices.Sort(values)
	return values
}

func constantsOf(file *ast.File, prefix string) (values []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if value, err := strconv.Unquote(literal.Value); err == nil {
				values = append(values, value)
			}
		}
		return true
	})
	return values
}
