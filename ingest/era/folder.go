package era

import (
	"fmt"
	"net/url"
	"strings"
)

// FolderPath turns a file: URL of a folder, or a plain path, into a path.
func FolderPath(folder string) (string, error) {
	if !strings.HasPrefix(folder, "file:") {
		if scheme, _, found := strings.Cut(folder, "://"); found {
			return "", fmt.Errorf("era folder %q: scheme %q is not available in this build, only file: is", folder, scheme)
		}
		return folder, nil
	}
	u, err := url.Parse(folder)
	if err != nil {
		return "", fmt.Errorf("era folder: %w", err)
	}
	path := u.Path
	if u.Opaque != "" { // file:relative/folder
		if path, err = url.PathUnescape(u.Opaque); err != nil {
			return "", fmt.Errorf("era folder %q: %w", folder, err)
		}
	}
	switch {
	case u.Host != "" && u.Host != "localhost":
		return "", fmt.Errorf("era folder %q: a file: URL cannot name host %q; three slashes begin an absolute path", folder, u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("era folder %q: the URL of a folder has no query or fragment", folder)
	case path == "":
		return "", fmt.Errorf("era folder %q: the URL has no path", folder)
	}
	return path, nil
}
