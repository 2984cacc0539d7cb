package version

import (
	"strings"
	"testing"
)

// A test has no version of its own: what it says is what the linker would have been told.
func TestRequestsSayVersionAndCommit(t *testing.T) {
	defer func(version, commit string) { stampedVersion, stampedCommit = version, commit }(stampedVersion, stampedCommit)
	stampedVersion, stampedCommit = "v1.2.3", "0123456789abcdef0123456789abcdef01234567"
	if got, want := Product("svc"), "svc/v1.2.3 ("+stampedCommit+")"; got != want {
		t.Errorf("User-Agent is %q, not %q", got, want)
	}
	if got := Build(); !strings.HasPrefix(got, "v1.2.3 ("+stampedCommit+") go") {
		t.Errorf("--version is %q", got)
	}
}

// Sources that "git archive" has packed know their commit; those that Go fetches, as their module has them, do not.
func TestSourcesWithoutGitSayTheirCommit(t *testing.T) {
	defer func(text string) { archived = text }(archived)
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for text, want := range map[string]string{commit + " 1767225600\n": commit, "$Format:%H %ct$\n": ""} {
		if archived = text; Revision() != want {
			t.Errorf("%q is commit %q", text, Revision())
		}
	}
}
