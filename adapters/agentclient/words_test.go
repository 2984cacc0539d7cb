package agentclient_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/role"
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

// So must the words of types whose constants have no common prefix.
func TestWordsOfRolesAndProtocolAreEqual(t *testing.T) {
	const ports, roles, wire = "../../ports", "../../core/role", "../../agent/protocol"
	changes := without(constants(t, wire, "Login"), protocol.LoginPrepared, protocol.LoginOpen) // these two change no login
	for _, c := range []struct {
		typ      string
		in, wire []string
	}{
		{"role.Kind", typed(t, roles, "Kind"), changes},
		{"role.AccessProfile", typed(t, roles, "AccessProfile"), constants(t, wire, "Profile")},
		{"ports.LoginCondition", typed(t, ports, "LoginCondition"), constants(t, wire, "Condition")},
	} {
		if !slices.Equal(c.in, c.wire) {
			t.Errorf("%s has %v, the protocol %v", c.typ, c.in, c.wire)
		}
	}
}

// What goes over the wire as it is has the same fields on both sides, in JSON too.
func TestFieldsOfRolesAndProtocolAreEqual(t *testing.T) {
	for _, c := range []struct{ in, wire any }{
		{role.Proof{}, protocol.LoginProof{}},
		{role.Dependency{}, protocol.LoginDependency{}},
	} {
		if in, wire := jsonFields(c.in), jsonFields(c.wire); !slices.Equal(in, wire) {
			t.Errorf("%T has %v, the protocol %v", c.in, in, wire)
		}
	}
}

func jsonFields(v any) (fields []string) {
	for f := range reflect.TypeOf(v).Fields() {
		fields = append(fields, f.Name+" "+f.Tag.Get("json"))
	}
	return fields
}

func without(words []string, others ...string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return slices.Contains(others, w) })
}

// constants returns the sorted values of all string constants of a package whose names begin with prefix.
func constants(t *testing.T, folder, prefix string) []string {
	t.Helper()
	return collect(t, folder, func(c *ast.ValueSpec) bool { return strings.HasPrefix(c.Names[0].Name, prefix) })
}

// typed returns the sorted values of all string constants of a package that are declared with this type.
func typed(t *testing.T, folder, name string) []string {
	t.Helper()
	return collect(t, folder, func(c *ast.ValueSpec) bool {
		typ, named := c.Type.(*ast.Ident)
		return named && typ.Name == name
	})
}

func collect(t *testing.T, folder string, wanted func(*ast.ValueSpec) bool) []string {
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
		values = append(values, constantsOf(file, wanted)...)
	}
	if len(values) == 0 {
		t.Fatalf("%s has no such constants", folder)
	}
	slices.Sort(values)
	return values
}

func constantsOf(file *ast.File, wanted func(*ast.ValueSpec) bool) (values []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !wanted(spec) {
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
