// Package citoken holds which OIDC tokens of CI systems may be exchanged for preview CI keys: what a namespace trusts, how
// subjects are matched, and what a token must say. Whether a token is its issuer's is found out elsewhere.
package citoken
