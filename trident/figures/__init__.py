"""What a run tells of itself: events, figures, metrics and traces."""
