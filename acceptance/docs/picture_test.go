package docs

import (
	"fmt"
	"html"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

const (
	module  = "github.com/pgherd/pgherd/"
	picture = "docs/develop/architecture.svg"
)

// room is a folder of packages, and where it stands in the picture. A package is in the first room that it fits.
type room struct {
	folder, says string
	x, y, w, h   int
}

var rooms = []room{
	{"hosts/svc", "the client", 20, 20, 190, 80},
	{"hosts", "programs: each part is started and wired up here", 250, 20, 650, 70},
	{"adapters", "HTTP, SQL, mail, secrets: what connects the use cases to the world", 250, 140, 330, 120},
	{"agent", "beside PostgreSQL", 680, 140, 190, 320},
	{"core/controlplane", "the use cases", 310, 300, 280, 190},
	{"fakes", "ports in memory, for tests", 60, 500, 170, 150},
	{"ports", "interfaces that the use cases need", 270, 530, 340, 50},
	{"core", "the rules, as pure functions and state machines", 20, 700, 880, 110},
}

// ways are the lines of the picture. One stands there if, and only if, a package of the first room imports one of the second.
var ways = []struct{ from, to, path string }{
	{"hosts/svc", "hosts", "M210 55H250"},
	{"hosts/svc", "adapters", "M170 100V195H250"},
	{"hosts/svc", "core", "M50 100V700"},
	{"hosts", "adapters", "M415 90V140"},
	{"hosts", "agent", "M775 90V140"},
	{"hosts", "core/controlplane", "M583 90V300"},
	{"hosts", "ports", "M600 90V530"},
	{"hosts", "core", "M885 90V700"},
	{"adapters", "agent", "M580 195H680"},
	{"adapters", "core/controlplane", "M450 260V300"},
	{"adapters", "ports", "M290 260V530"},
	{"adapters", "core", "M258 260V700"},
	{"agent", "core", "M775 460V700"},
	{"core/controlplane", "ports", "M450 490V530"},
	{"core/controlplane", "core", "M590 380H645V700"},
	{"fakes", "ports", "M230 555H270"},
	{"fakes", "core", "M145 650V700"},
	{"ports", "core", "M450 580V700"},
}

// roomOf is the room of a package; "" of what the picture leaves out.
func roomOf(name string) string {
	for _, r := range rooms {
		if name == r.folder || strings.HasPrefix(name, r.folder+"/") {
			return r.folder
		}
	}
	return ""
}

// way leads from a room that imports to one that is imported.
type way struct{ from, to string }

// drawn lists the packages of each room, by the names of the folders below it, and who imports whom. Tests count for nothing.
func drawn(t *testing.T) (packages map[string][]string, imports map[way]bool) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	list.Dir = root
	packages, imports = map[string][]string{}, map[way]bool{}
	for line := range strings.Lines(string(check.Must(list.Output())(t))) {
		words := strings.Fields(line)
		name := strings.TrimPrefix(words[0], module)
		of := roomOf(name)
		if of == "" || strings.HasSuffix(name, "test") {
			continue
		}
		below, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(name, of), "/"), "/")
		if below != "" && !slices.Contains(packages[of], below) {
			packages[of] = append(packages[of], below)
		}
		for _, imported := range words[1:] {
			own, isOwn := strings.CutPrefix(imported, module)
			if to := roomOf(own); isOwn && to != "" && to != of {
				imports[way{of, to}] = true
			}
		}
	}
	return packages, imports
}

// lineHeight and letter are those of the small letters, in pixels.
const (
	lineHeight = 14
	letter     = 6
)

// draw makes the picture.
func draw(packages map[string][]string, imports map[way]bool) string {
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 920 830" font-family="sans-serif" font-size="11">
<title>Who imports whom in pgherd</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>
<rect width="920" height="830" fill="#fff"/>
<g fill="none" stroke="#555" marker-end="url(#tip)">
`)
	for _, w := range ways {
		if imports[way{w.from, w.to}] {
			fmt.Fprintf(&b, "<path d=\"%s\"><title>%s imports %s</title></path>\n", w.path, w.from, w.to)
		}
	}
	b.WriteString("</g>\n")
	for _, r := range rooms {
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="#eef3f8" stroke="#36597a"/>`+"\n", r.x, r.y, r.w, r.h)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" font-size=\"14\" font-weight=\"bold\">%s/</text>\n", r.x+10, r.y+20, r.folder)
		for i, line := range r.lines(packages) {
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%s</text>\n", r.x+10, r.y+36+i*lineHeight, html.EscapeString(line))
		}
	}
	return b.String() + "</svg>\n"
}

// lines are what a room does, and its packages.
func (r room) lines(packages map[string][]string) []string {
	return append(wrap(strings.Fields(r.says), " ", r.w), wrap(packages[r.folder], ", ", r.w)...)
}

// wrap puts words into lines that fit a box.
func wrap(words []string, between string, width int) (lines []string) {
	line := ""
	for _, word := range words {
		if line != "" && (len(line)+len(between)+len(word))*letter > width-20 {
			lines, line = append(lines, line+strings.TrimRight(between, " ")), ""
		}
		if line != "" {
			line += between
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// TestGoldenPictureOfPackages holds the picture against the packages. "make generate" draws it anew.
func TestGoldenPictureOfPackages(t *testing.T) {
	packages, imports := drawn(t)
	undrawn := maps.Clone(imports)
	for _, w := range ways {
		if !imports[way{w.from, w.to}] {
			t.Errorf("no package of %s imports one of %s: take the way out of the picture", w.from, w.to)
		}
		delete(undrawn, way{w.from, w.to})
	}
	for w := range undrawn {
		t.Errorf("%s imports %s: the picture has no way for that", w.from, w.to)
	}
	for _, r := range rooms {
		if has := 30 + len(r.lines(packages))*lineHeight; has > r.h {
			t.Errorf("the box of %s has %d pixels of text in %d", r.folder, has, r.h)
		}
	}
	want := draw(packages, imports)
	path := filepath.Join(root, picture)
	if os.Getenv("PGHERD_UPDATE_GOLDEN") != "" {
		check.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != want {
		t.Errorf("%s does not follow from the packages any more; run make generate (%v)", picture, err)
	}
}
