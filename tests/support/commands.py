"""Programs that tests run."""
import subprocess


def run(*command, **options):
    """What a program prints to stdout. AssertionError with all that it printed if it fails. `options`: those of subprocess.run."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout
