package pgbackrest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"

	"github.com/pgherd/pgherd/agent/archive"
)

// infoFile is what an archive says of the server that it is of.
const infoFile = "archive/" + stanza + "/archive.info"

// versionPattern is how it says of which major version the server is.
var versionPattern = regexp.MustCompile(`(?m)^db-version="(\d+)"$`)

// Major is the major version of the server that the archive is of.
func (e *Engine) Major(ctx context.Context) (int, error) {
	info, err := e.run(ctx, "repo-get", infoFile)
	if err != nil {
		return 0, err
	}
	return majorIn(info)
}

func majorIn(info []byte) (int, error) {
	m := versionPattern.FindSubmatch(info)
	if m == nil {
		return 0, fmt.Errorf("%s does not say of which version the server is", infoFile)
	}
	return strconv.Atoi(string(m[1]))
}

// walPattern is how a folder of a server's WAL is named: by the server's major version, and its number in the archive.
var walPattern = regexp.MustCompile(`^\d+-\d+$`)

// walFolder is the folder of the server's WAL, or empty where the archive has none yet, or is none. A server keeps its version,
// so that there is one at most.
func (e *Engine) walFolder(ctx context.Context) (string, error) {
	const parent = "archive/" + stanza
	files, err := e.list(ctx, parent)
	for name := range files {
		if walPattern.MatchString(name) {
			return parent + "/" + name, err
		}
	}
	return "", err
}

// Timelines implements archive.Engine.
func (e *Engine) Timelines(ctx context.Context) (list []archive.Timeline, err error) {
	folder, err := e.walFolder(ctx)
	if err != nil || folder == "" {
		return nil, err
	}
	files, err := e.list(ctx, folder)
	for name := range files {
		if t, ok := archive.ParseHistoryName(path.Base(name)); ok {
			list = append(list, t)
		}
	}
	slices.Sort(list)
	return list, err
}

// History implements archive.Engine.
func (e *Engine) History(ctx context.Context, t archive.Timeline) ([]byte, error) {
	folder, err := e.walFolder(ctx)
	if err != nil {
		return nil, err
	}
	return e.run(ctx, "repo-get", folder+"/"+t.History())
}

// Opens returns an archive.ErrKey where the passphrase is not that of the archive. The program does not always tell: what does
// not open may look like anything else.
func (e *Engine) Opens(ctx context.Context) error {
	text, err := e.run(ctx, "repo-get", infoFile)
	switch {
	case err != nil && e.IsAway(err):
		return err
	case err != nil || !bytes.Contains(text, []byte("\n[db]\n")):
		return archive.ErrKey
	}
	return nil
}

// Folders are the names of the folders in the repository: where it is one of several servers, each has one.
func (e *Engine) Folders(ctx context.Context) (list []string, err error) {
	files, err := e.list(ctx)
	for name, f := range files {
		if f.Type == "path" && name != "." {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, err
}

// listed is an entry of a folder in the repository.
type listed struct {
	Type string `json:"type"`
	Time int64  `json:"time"`
}

// list lists a folder in the repository by the names in it; one that is not there has nothing.
func (e *Engine) list(ctx context.Context, args ...string) (files map[string]listed, err error) {
	text, err := e.run(ctx, "repo-ls", append([]string{"--output=json"}, args...)...)
	if err != nil {
		return nil, err
	}
	return readList(text)
}

func readList(text []byte) (files map[string]listed, err error) {
	if err := json.Unmarshal(text, &files); err != nil {
		return nil, fmt.Errorf("pgbackrest repo-ls: %w", err)
	}
	return files, nil
}

// RestoreWhole implements archive.Engine.
func (e *Engine) RestoreWhole(ctx context.Context, backup, dir string, tell func(percent int)) error {
	return e.runHeard(ctx, func(line string) {
		if m := donePattern.FindStringSubmatch(line); m != nil {
			percent, _ := strconv.Atoi(m[1]) // the pattern holds
			tell(percent)
		}
	}, "restore", "--set="+backup, "--pg1-path="+dir, "--type=none", "--delta", "--force", "--log-level-console=detail")
}

// donePattern is how the program says how much is done.
var donePattern = regexp.MustCompile(`, (\d{1,3})(?:\.\d+)?%\)`)
