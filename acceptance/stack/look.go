package stack

// CredentialsFile holds the passwords of the platform's own accounts on the server.
func (s *Stack) CredentialsFile() string { return s.credentialsFile() }
