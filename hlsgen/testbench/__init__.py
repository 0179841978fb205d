"""Input of simulations: stimuli, and the codec between integer codes and the words of a stream."""
