package citoken

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
)

func TestPatterns(t *testing.T) {
	for pattern, subjects := range map[string][2]string{ // what it matches and what not, between spaces
		"repo:acme/shop:ref:refs/heads/main": {
			"repo:acme/shop:ref:refs/heads/main",
			"repo:acme/shop:ref:refs/heads/main2 repo:acme/shop:ref:refs/heads/Main xrepo:acme/shop:ref:refs/heads/main repo:acme/shop",
		},
		"repo:acme/*:pull_request": {
			"repo:acme/shop:pull_request repo:acme/a/b:pull_request",
			"repo:acme/:pull_request repo:acme2/shop:pull_request repo:acme/shop:environment:x:pull_request " +
				"repo:evil/acme/shop:pull_request",
		},
		"repo:acme/shop:ref:refs/heads/*": {
			"repo:acme/shop:ref:refs/heads/main repo:acme/shop:ref:refs/heads/feature/x",
			"repo:acme/shop:ref:refs/heads/ repo:acme/shop:ref:refs/heads/a:b repo:acme/shop:ref:refs/tags/v1",
		},
		"repo:acme/shop:**": {
			"repo:acme/shop:pull_request repo:acme/shop:ref:refs/heads/main repo:acme/shop:environment:a:b",
			"repo:acme/shop repo:acme/shop: repo:acme/shop2:pull_request repo:acme:pull_request",
		},
		"repo:acme/s*-*p:ref:**": {
			"repo:acme/sh-op:ref:x repo:acme/s--p-xp:ref:x:y",
			"repo:acme/s-p:ref:x repo:acme/shop:ref:x repo:acme/s-xp:ref:x",
		},
		"project_path:acme/*/shop:ref_type:branch:ref:*": {
			"project_path:acme/group/sub/shop:ref_type:branch:ref:main",
			"project_path:acme/shop:ref_type:branch:ref:main project_path:acme/x/shop:ref_type:tag:ref:main",
		},
	} {
		p, err := ParsePattern(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
		for i, list := range subjects {
			for subject := range strings.SplitSeq(list, " ") {
				if got := p.Matches(subject); got != (i == 0) {
					t.Errorf("%s matches %s: %t", pattern, subject, got)
				}
			}
		}
	}
}

func TestPatternsOfOthersAreRefused(t *testing.T) {
	for _, pattern := range []string{
		"", "*", "**", "repo:*", "repo:**", "repo:acme*", "repo:acme*/shop:ref:x", "repo:*/shop:ref:refs/heads/main", "*:acme/shop:x",
		"repo::*", "repo:/*", "/:/*", ":::*", "organization:*", "repo:acme/**", "repo:acme/shop:**:x", "repo:acme/shop:***",
		"repo:acme/shop:a**", "repo:acme/shop:a**b:x", "repo:acme/é:*", "repo:acme/\n*", "repo:acme/" + strings.Repeat("x*", 9),
		"repo:acme/" + strings.Repeat("x", 246),
	} {
		if p, err := ParsePattern(pattern); !fault.Has(err, fault.ValidationError) || p != "" {
			t.Errorf("%q is a pattern: %v", pattern, err)
		}
	}
}

// asRegexp says what a pattern means a second time.
func asRegexp(p Pattern) *regexp.Regexp {
	text, all := strings.CutSuffix(string(p), "**")
	text = strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, "[^:]+")
	if all {
		text += "(?s:.+)"
	}
	return regexp.MustCompile(`\A` + text + `\z`)
}

// check fails where a pattern matches another subject than it means, or one of somebody whom it does not name.
func check(t interface{ Errorf(string, ...any) }, text, subject string) {
	p, err := ParsePattern(text)
	if err != nil {
		return
	}
	got := p.Matches(subject)
	if want := asRegexp(p).MatchString(subject); got != want {
		t.Errorf("%q matches %q: %t, want %t", text, subject, got, want)
	}
	named, _, _ := strings.Cut(text, "*")
	if got && (!strings.HasPrefix(subject, named) || named != text && ended(named) < 2) {
		t.Errorf("%q matches %q of another", text, subject)
	}
}

func TestPatternsMeanWhatTheySay(t *testing.T) {
	word := rapid.StringMatching(`[ab/:*]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		check(t, "a:b/"+word.Draw(t, "pattern")+rapid.SampledFrom([]string{"", ":**"}).Draw(t, "end"),
			"a:b/"+strings.ReplaceAll(word.Draw(t, "subject"), "*", "c"))
	})
}

// A pattern matches the subjects that a second way to decide says, and no more.
func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{
		{"repo:acme/shop:ref:refs/heads/main", "repo:acme/shop:ref:refs/heads/main"},
		{"repo:acme/*:ref:refs/heads/*", "repo:acme/a/b:ref:refs/heads/feature/x"},
		{"repo:acme/shop:**", "repo:acme/shop:environment:a:b"},
		{"repo:acme/s*p*:x", "repo:acme/sppp:x"},
		{"organization:acme:pipeline:*:ref:**", "organization:acme:pipeline:web:ref:refs/heads/main:commit:1:step:2"},
		{"org/1/project/*", "org/1/project/2/user/3"},
		{"repo:*", "repo:evil/shop:pull_request"},
		{"**", "x"}, {"a:b:**", "a:b:"}, {"a:b:**", "a:b::"}, {"a:b:*", "a:b:\n"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, subject string) { check(t, pattern, subject) })
}
